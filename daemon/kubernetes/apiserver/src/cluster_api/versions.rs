//! Versions of Cluster API that a server serves.

/// Version of the groups of Cluster API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterApiVersion {
    /// `v1beta1`, which is deprecated.
    V1Beta1,
    /// `v1beta2`.
    V1Beta2,
}

impl ClusterApiVersion {
    /// Name in paths.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
        }
    }
}

/// Served versions. Objects are stored in one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterApi {
    /// `v1beta1`, as before release 1.11.
    V1Beta1Only,
    /// `v1beta2`, as after the end of `v1beta1`.
    V1Beta2Only,
    /// Both versions.
    Both {
        /// Version in which objects are stored when they are written.
        storage: ClusterApiVersion,
    },
}

impl ClusterApi {
    pub(super) fn serves(self, version: ClusterApiVersion) -> bool {
        match self {
            Self::Both { .. } => true,
            only => only.storage() == version,
        }
    }

    pub(super) fn storage(self) -> ClusterApiVersion {
        match self {
            Self::V1Beta1Only => ClusterApiVersion::V1Beta1,
            Self::V1Beta2Only => ClusterApiVersion::V1Beta2,
            Self::Both { storage } => storage,
        }
    }
}
