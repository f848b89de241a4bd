//! Systems that are compared.

/// System that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::bench) enum Subject {
    /// The build under test.
    Ipamd,
    /// An older build of this project.
    Against,
    /// etcd of Debian.
    Etcd,
    /// The CNI plugin host-local.
    HostLocal,
}

impl Subject {
    /// Name in tables and files.
    pub(in crate::bench) fn name(self) -> &'static str {
        match self {
            Self::Ipamd => "ipamd",
            Self::Against => "against",
            Self::Etcd => "etcd",
            Self::HostLocal => "host-local",
        }
    }
}
