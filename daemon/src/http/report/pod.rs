//! `/v1/pods`: pods as the watchers of their clusters report them.

use ipam_api::access::{Target, Verb};
use ipam_api::pod::{PodIdentity, PodsReport, PodsReported, ReportedPod};
use ipam_api::resource::EndpointKey;
use ipam_api::workload::WorkloadName;
use ipam_machine::command::{ReportPods, Text};
use ipam_machine::{Action, Applied, State, command};

use super::workload::check_realm;
use crate::http::convert::{controller_in, controller_out, strings, texts};
use crate::http::list::{Listable, Row, Shape};
use crate::http::request::{ApiError, ApiResponse, Freshness, Write};

const PERMISSION: (Verb, Target) = (Verb::Report, Target::Endpoint);

/// Records a report. A report without changes makes no log entry: a watcher that restarts reports most pods
/// again.
pub(in crate::http) async fn report(mut write: Write) -> Result<ApiResponse<PodsReported>, ApiError> {
    write.idempotency = None;
    let request: PodsReport = write.read()?;
    let report = converted(request);
    let known = write.app.who(&write.caller).await?;
    known.check(PERMISSION)?;
    check_realm(&known.grant, &report.realm)?;
    let action = Action::ReportPods(report);
    action.check()?;
    let (state, _) = write.app.read(&write.caller, PERMISSION, Freshness::default()).await?;
    if let Action::ReportPods(report) = &action
        && !state.is_news_of_pods(report)
    {
        let revision = state.revision();
        return Ok(ApiResponse::new(PodsReported { revision }, revision));
    }
    let Applied { revision, .. } = write.propose(action).await?;
    Ok(ApiResponse::new(PodsReported { revision }, revision))
}

fn converted(request: PodsReport) -> ReportPods {
    let PodsReport { realm, pods, gone, complete } = request;
    let pod = |pod: PodIdentity| {
        let PodIdentity { uid, endpoint: WorkloadName { kind, namespace, name }, node, labels, controllers } =
            pod;
        command::ReportedPod {
            uid: Text::given(uid),
            endpoint: EndpointKey { realm: realm.clone(), kind, namespace, name },
            node,
            labels: texts(labels),
            controllers: controllers.into_iter().map(controller_in).collect(),
        }
    };
    let pods = pods.into_iter().map(pod).collect();
    ReportPods { pods, gone: gone.into_iter().map(Text::given).collect(), complete, realm }
}

/// Fields, filters and orders of the list of reported pods.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/pods",
    own: &[
        Row::text("realm", "realm"),
        Row::text("uid", "pod.uid"),
        Row::text("kind", "pod.endpoint.kind"),
        Row::text("namespace", "pod.endpoint.namespace"),
        Row::text("name", "pod.endpoint.name"),
        Row::text("node", "pod.node"),
        Row::shown(&["pod"]),
    ],
    named: false,
    addressed: false,
};

/// Pods that watchers have reported, oldest first.
pub(in crate::http) struct Pods;

impl Listable for Pods {
    type Item = ReportedPod;
    const SHAPE: &'static Shape = &SHAPE;

    fn target() -> Target {
        Target::Endpoint
    }

    fn total(state: &State) -> usize {
        state.reported_pods.len()
    }

    fn ids<'a>(state: &'a State, after: Option<u64>) -> Option<Box<dyn Iterator<Item = u64> + 'a>> {
        Some(Box::new(state.reported_pods.iter_after(after.unwrap_or(0).into()).map(|(id, _)| id.get())))
    }

    fn item(state: &State, id: u64) -> Option<ReportedPod> {
        let row = state.reported_pods.get(id.into())?;
        let EndpointKey { realm, kind, namespace, name } = row.endpoint.clone();
        let pod = PodIdentity {
            uid: row.uid.to_string(),
            endpoint: WorkloadName { kind, namespace, name },
            node: row.node.clone(),
            labels: strings(&row.labels),
            controllers: row.controllers.iter().map(controller_out).collect(),
        };
        Some(ReportedPod { realm, pod })
    }
}
