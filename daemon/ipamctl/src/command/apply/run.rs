//! The commands: files are read, compared and applied.

use std::path::PathBuf;

use clap::Args;
use ipam_api::client::Call;
use ipam_api::limits::TRANSACTION_STEPS_MAX;
use ipam_api::name::ResourceName;
use ipam_api::{Code, Problem};
use serde_json::{Value, json};

use super::kind::Kind;
use super::plan::{Change, Current, Plan};
use super::view;
use crate::client::confirm;
use crate::client::list::unreadable;
use crate::client::requests::Again;
use crate::client::session::Session;
use crate::output::error::Failure;
use crate::output::text;

/// Arguments of `apply`.
#[derive(Debug, Args)]
#[command(
    after_help = "A file has YAML documents or JSON: each a resource with its `kind` (network, subnet, pool, reservation,
node, namespace, host-policy), or a list as `-o yaml` shows it. What isn't said in a file gets its default.

  kind: subnet
  name: lan-10
  cidr: 10.10.0.0/24
  ---
  kind: pool
  name: web
  subnet: lan-10
  ranges: [10.10.0.50-10.10.0.199]

All fields of a kind: ipamctl explain pool. More about files: deploy/docs/files.md.

Spiderpool's SpiderSubnets become subnets (deploy/docs/spiderpool.md):

  kubectl get spidersubnets -o yaml | ipamctl apply -f -

Examples:
  ipamctl apply -f pools.yaml
  ipamctl apply -f pools/ --comment NET-4711
  ipamctl apply -f pools/ --manager argocd/infra-pools --prune --yes
  ipamctl apply -f - --dry-run"
)]
pub(crate) struct ApplyArguments {
    #[command(flatten)]
    files: FileArguments,
    /// Delete resources of this manager that are absent from the files; pools in use drain
    #[arg(long, requires = "manager")]
    prune: bool,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = "Exits with 7 when there is a difference.

Examples:
  ipamctl diff -f pools/
  ipamctl diff -f pools.yaml -o json
  ipamctl diff -f pools/ --manager argocd/infra-pools")]
pub(crate) struct DiffArguments {
    #[command(flatten)]
    files: FileArguments,
}

/// Files to read.
#[derive(Debug, Args)]
pub(super) struct FileArguments {
    /// File, directory of .yaml, .yml and .json files, or - for standard input; may be repeated
    #[arg(short = 'f', long = "file", value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,
}

/// Runs `apply`.
pub(crate) async fn run(session: &Session, arguments: &ApplyArguments) -> Result<(), Failure> {
    let files = &arguments.files;
    let (plan, revision) = compare(session, files, arguments.prune).await?;
    let changes = plan.len();
    if changes > TRANSACTION_STEPS_MAX {
        return Err(Failure::usage(
            format!("{changes} changes exceed the limit of {TRANSACTION_STEPS_MAX} per transaction"),
            "Nothing was changed. Apply the files in several parts.",
        ));
    }
    if session.format.is_for_people() {
        session.print(&view::text(&plan))?;
    }
    if changes == 0 {
        // Same document as the answer to a transaction without steps.
        let nothing = json!({"results": [], "revision": revision});
        if !session.data(nothing.to_string().as_bytes())? {
            session.say("the cluster matches the files; nothing was changed");
        }
        return Ok(());
    }
    check_managers(&plan, session.writing.take_over)?;
    ask(session, &plan).await?;
    let call = Call::post("/v1/transactions").json(&plan.transaction())?.slow();
    let written = session.write(call, Again::ByKey).await;
    let answer = written.map_err(|failure| about_step(failure, &plan))?;
    let number = text::plural(changes as u64, "change", "changes");
    let sentence = if session.writing.dry_run {
        format!("{number} would be made in one transaction ({})", view::counts(&plan))
    } else {
        format!("{number} in one transaction{} ({})", session.at_revision(&answer), view::counts(&plan))
    };
    session.done(&answer, &names(&plan), &sentence)
}

/// Runs `diff`.
pub(crate) async fn diff(session: &Session, arguments: &DiffArguments) -> Result<(), Failure> {
    let (plan, _) = compare(session, &arguments.files, false).await?;
    let json = view::json(&plan).to_string();
    session.show(json.as_bytes(), &names(&plan), || Ok(view::text(&plan)))?;
    if plan.len() > 0 {
        return Err(Failure::Found);
    }
    session.say("the cluster matches the files");
    Ok(())
}

fn names(plan: &Plan) -> String {
    let named = |(kind, name): (Kind, &ResourceName)| format!("{}/{name}", kind.word());
    plan.steps().map(|change| named(change.resource())).collect::<Vec<_>>().join("\n")
}

/// Compares the files with the servers' resources. Reads the kinds in the files, or all kinds for a manager.
/// Returns the plan and the revision of the last list.
async fn compare(session: &Session, files: &FileArguments, prune: bool) -> Result<(Plan, u64), Failure> {
    let manager = session.writing.manager.as_deref();
    let documents = files.read(session).await?;
    let (mut current, mut revision) = (Vec::new(), 0);
    for kind in Kind::ALL {
        if manager.is_some() || documents.iter().any(|document| document.kind == kind) {
            let (found, of) = list(session, kind).await?;
            current.extend(found);
            revision = of;
        }
    }
    Ok((Plan::of(documents, &current, manager, prune), revision))
}

async fn list(session: &Session, kind: Kind) -> Result<(Vec<Current>, u64), Failure> {
    let listed = session.list::<Value>(kind.path(), None, |_| true).await?;
    let mut found = Vec::new();
    for item in listed.items {
        let json = serde_json::to_vec(&item).map_err(unreadable)?;
        let (name, spec) = kind.read(&json).map_err(newer)?;
        let revision = item.pointer("/meta/revision").and_then(Value::as_u64);
        let revision =
            revision.ok_or_else(|| unreadable(format!("{} {name} has no revision", kind.word())))?;
        let held = item.pointer("/status/counts/allocated").or_else(|| item.pointer("/status/allocated"));
        let held = held.and_then(Value::as_u64).unwrap_or_default();
        found.push(Current { kind, name, spec, revision, held });
    }
    Ok((found, listed.revision))
}

/// Failure for a field that this program doesn't know, because a write would remove the field.
fn newer(problem: Problem) -> Failure {
    Failure::usage(
        format!("the servers use a field unknown to this version of ipamctl: {}", problem.detail),
        "Nothing was changed. Use an ipamctl of the servers' version (ipamctl version).",
    )
}

/// Refuses changes to resources of other managers before any request, as the servers would.
fn check_managers(plan: &Plan, take_over: bool) -> Result<(), Failure> {
    if take_over {
        return Ok(());
    }
    for change in &plan.0 {
        let Change::Update { document, current, .. } = change else { continue };
        let wanted = document.spec.get("managed_by").and_then(Value::as_str);
        if let Some(manager) = current.managed_by().filter(|manager| Some(*manager) != wanted) {
            let detail = format!("{} {} is managed by {manager}", document.kind.word(), document.name);
            return Err(Problem::new(Code::ManagedElsewhere, detail)
                .help("Change it through its manager, or take it over with --take-over. Nothing was changed.")
                .into());
        }
    }
    Ok(())
}

/// Adds the file and the position of a refused step to the failure.
fn about_step(mut failure: Failure, plan: &Plan) -> Failure {
    let Failure::Refused(refusal) = &mut failure else { return failure };
    let step = refusal.problem.context.as_ref().and_then(|context| context.step);
    let step = step.and_then(|step| usize::try_from(step).ok());
    let found = step.and_then(|step| Some((step, plan.steps().nth(step)?)));
    let Some((step, change)) = found else { return failure };
    let (kind, name) = change.resource();
    let place = change.place().map(|place| format!(" of {place}")).unwrap_or_default();
    // The step number means nothing to the user, so it is removed.
    let detail = &refusal.problem.detail;
    let detail = detail.strip_prefix(&format!("steps[{step}]: ")).unwrap_or(detail);
    refusal.problem.detail = format!("{} {name}{place}: {detail}", kind.word());
    refusal.problem.help = format!("{} Nothing was changed.", refusal.problem.help);
    failure
}

/// Asks for confirmation of removals.
async fn ask(session: &Session, plan: &Plan) -> Result<(), Failure> {
    let going: Vec<&Current> = plan
        .0
        .iter()
        .filter_map(|change| match change {
            Change::Delete(current) | Change::Drain(current) => Some(current),
            _ => None,
        })
        .collect();
    if going.is_empty() {
        return Ok(());
    }
    let of_kind = |kind: Kind| going.iter().filter(|current| current.kind == kind).count() as u64;
    let words: Vec<String> = Kind::ALL
        .into_iter()
        .filter(|kind| of_kind(*kind) > 0)
        .map(|kind| text::plural(of_kind(kind), kind.word(), &format!("{}s", kind.word())))
        .collect();
    let held: u64 =
        going.iter().filter(|current| current.kind == Kind::Pool).map(|current| current.held).sum();
    let summary = [format!(
        "{} will be deleted: absent from these files. {} held in them.",
        words.join(", "),
        text::plural(held, "address is", "addresses are")
    )];
    confirm::moderate(session, &summary, "Delete them?").await
}
