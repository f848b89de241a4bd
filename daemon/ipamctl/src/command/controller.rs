//! Controllers on the command line: `kind/name`, or `group/kind/name`.

use clap::Args;
use ipam_api::ObjectName;
use ipam_api::client::Call;
use ipam_api::name::shown;
use ipam_api::request::{AutomaticPool, EndRequest, Released, ScaleRequest};
use ipam_api::resource::{Controller, PoolSize, ScaleDown};

use crate::client::requests::Again;
use crate::client::session::Session;
use crate::output::error::Failure;
use crate::output::text;

/// Flags of endpoints that come back.
#[derive(Debug, Args)]
pub(crate) struct StickyArguments {
    /// Controller of the endpoint: kind/name or group/kind/name, such as apps/StatefulSet/db
    #[arg(long, value_name = "CONTROLLER", value_parser = parse)]
    pub(crate) controller: Option<Controller>,
    /// Keep the addresses for the endpoint after it is deleted
    #[arg(long)]
    pub(crate) sticky: bool,
    /// Policy for kept addresses after the controller scales down: release or keep
    #[arg(long, value_name = "POLICY")]
    pub(crate) scale_down: Option<ScaleDown>,
}

/// Arguments of `endpoint scale`.
#[derive(Debug, Args)]
pub(crate) struct ScaleArguments {
    /// kind/name or group/kind/name, such as apps/StatefulSet/db
    #[arg(value_parser = parse)]
    controller: Controller,
    /// Number of endpoints
    #[arg(long)]
    replicas: u32,
    /// First ordinal in the endpoint names
    #[arg(long, default_value_t = 0)]
    start: u32,
    /// UID of the controller; endpoints of another UID are unaffected
    #[arg(long)]
    uid: Option<String>,
}

/// A controller that is gone.
#[derive(Debug, Args)]
pub(crate) struct EndArguments {
    /// kind/name or group/kind/name, such as apps/StatefulSet/db
    #[arg(value_parser = parse)]
    controller: Controller,
    /// UID of the controller; resources of another UID are unaffected
    #[arg(long)]
    uid: Option<String>,
}

/// Pools that an endpoint's application has for itself.
#[derive(Debug, Args)]
pub(crate) struct AutomaticArguments {
    /// Create a pool for the controller in the subnet, with this many addresses (5) or replicas plus a number (+2)
    #[arg(long, value_name = "SIZE", requires = "controller", requires = "subnets")]
    automatic: Option<PoolSize>,
    /// Replicas of the controller, for --automatic +N
    #[arg(long, value_name = "COUNT", requires = "controller")]
    pub(crate) replicas: Option<u32>,
    /// Keep the pool after the controller is deleted, for one of the same name
    #[arg(long, requires = "automatic")]
    keep_pool: bool,
}

impl AutomaticArguments {
    pub(crate) fn pool(&self) -> Option<AutomaticPool> {
        self.automatic.map(|size| AutomaticPool { size, reclaim: !self.keep_pool })
    }
}

/// Parses a controller.
pub(crate) fn parse(text: &str) -> Result<Controller, String> {
    let (group, kind, name) = match text.split('/').collect::<Vec<_>>()[..] {
        [kind, name] => ("", kind, name),
        [group, kind, name] => (group, kind, name),
        _ => {
            return Err(format!(
                "{} is not a controller; write kind/name or group/kind/name, for example apps/StatefulSet/db",
                shown(text)
            ));
        }
    };
    let name = ObjectName::new(name).map_err(|problem| problem.detail)?;
    Ok(Controller { group: group.to_owned(), kind: kind.to_owned(), name, uid: None })
}

/// Formats a controller as on the command line.
pub(crate) fn written(controller: &Controller) -> String {
    let Controller { group, kind, name, uid: _ } = controller;
    if group.is_empty() { format!("{kind}/{name}") } else { format!("{group}/{kind}/{name}") }
}

/// Sets the number of replicas of a controller.
pub(crate) async fn scale(session: &Session, arguments: ScaleArguments) -> Result<(), Failure> {
    let (realm, namespace) = session.home();
    let ScaleArguments { controller, replicas, start, uid } = arguments;
    let name = written(&controller);
    let controller = Controller { uid, ..controller };
    let request = ScaleRequest { realm, namespace, controller, replicas, start };
    let nothing = format!("{name} has {replicas}; no addresses were kept for removed endpoints");
    change(session, Call::post("/v1/controllers/scale").json(&request)?, &name, nothing).await
}

/// Ends a deleted controller.
pub(crate) async fn end(session: &Session, arguments: EndArguments) -> Result<(), Failure> {
    let (realm, namespace) = session.home();
    let EndArguments { controller, uid } = arguments;
    let name = written(&controller);
    let request = EndRequest { realm, namespace, controller: Controller { uid, ..controller } };
    let nothing = format!("{name} has ended; no addresses were kept for it");
    change(session, Call::post("/v1/controllers/end").json(&request)?, &name, nothing).await
}

/// Sends a change of a controller, and reports the released addresses, or `nothing` if there are none.
async fn change(session: &Session, call: Call, name: &str, nothing: String) -> Result<(), Failure> {
    let answer = session.write(call, Again::ByKey).await?;
    let released: Released = answer.read()?;
    let sentence = match released.addresses.is_empty() {
        true => nothing,
        false => format!("{} of {name} {}", text::released(&released), session.tense("released")),
    };
    session.done(&answer, name, &sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_written_as_it_is_read() {
        for text in ["StatefulSet/db", "apps/StatefulSet/db", "kubevirt.io/VirtualMachine/mail"] {
            assert_eq!(written(&parse(text).unwrap()), text);
        }
        for text in ["db", "a/b/c/d", "apps/StatefulSet/", ""] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
