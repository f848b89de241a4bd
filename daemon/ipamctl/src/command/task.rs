//! `ipamctl task`: background tasks of the leader.
//!
//! Each member knows only its own runs, so all members are queried, and the answer of the leader is shown.

use clap::{Args, Subcommand};
use futures::future::join_all;
use ipam_api::client::Call;
use ipam_api::reclaim::{Task, Tasks};
use ipam_api::time::Timestamp;
use ipam_api::{Code, Problem, strict};

use crate::client::scope::Part;
use crate::client::session::Session;
use crate::command::status::{self, DEADLINE};
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text::{self, Fields};

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl task list
  ipamctl task show silent-nodes";

/// Verbs of tasks.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List the background tasks of the leader with their newest runs
    #[command(alias = "ls", after_help = "Examples:\n  ipamctl task list\n  ipamctl task list -o json")]
    List,
    /// Show a background task of the leader
    #[command(alias = "describe", after_help = "Examples:\n  ipamctl task show silent-nodes")]
    Show(TaskArguments),
}

/// A task by its name.
#[derive(Debug, Args)]
pub(crate) struct TaskArguments {
    /// Name
    task: String,
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    session.without("tasks", &[Part::Network, Part::Realm, Part::Namespace])?;
    let (tasks, body) = of_leader(session).await?;
    match verb {
        Verb::List => {
            let names: Vec<&str> = tasks.tasks.iter().map(|task| task.name.as_str()).collect();
            session.show_table(&body, &names.join("\n"), || table(&tasks.tasks, session.now()))?;
            session.tell(&format!("leader {}; counts since its start", tasks.member));
            Ok(())
        }
        Verb::Show(TaskArguments { task: name }) => {
            let Some(task) = tasks.tasks.iter().find(|task| task.name == name) else {
                let detail = format!("no task is called {}", ipam_api::name::shown(&name));
                let meant = strict::nearest(&name, tasks.tasks.iter().map(|task| task.name.as_str()));
                let problem = Problem::new(Code::NotFound, detail).help("List the tasks: ipamctl task list");
                return Err(Failure::from(problem).meant(meant.map(str::to_owned)));
            };
            let json = serde_json::to_vec(task).map_err(std::io::Error::from)?;
            session.show(&json, &name, || Ok(shown(task, &tasks.member, session.now())))
        }
    }
}

/// Tasks of the leader, with the unparsed answer.
async fn of_leader(session: &Session) -> Result<(Tasks, Vec<u8>), Failure> {
    let servers = status::known_servers(session).await;
    let within = session.reading.timeout.min(DEADLINE);
    let asked = servers.iter().map(|server| async move {
        let answer = session.ask_one(server, Call::get("/v1/tasks?consistency=stale").within(within)).await?;
        let tasks: Tasks = answer.read()?;
        Ok::<_, Problem>((tasks, answer.body))
    });
    let answers = join_all(asked).await;
    let newest = |tasks: &Tasks| tasks.tasks.iter().filter_map(|task| task.started_at).max();
    let mut refused = None;
    let mut details = String::from("no member leads");
    let mut leaders = Vec::new();
    for (server, answer) in servers.iter().zip(answers) {
        match answer {
            Ok((tasks, body)) if tasks.leads => leaders.push((tasks, body)),
            Ok((tasks, _)) => details.push_str(&format!("; {server}: {} does not lead", tasks.member)),
            Err(problem) => {
                details.push_str(&format!("; {server}: {}", status::reason(server, &problem)));
                let unreachable = problem.code == Code::Unreachable;
                refused = refused.or(Some(problem).filter(|_| !unreachable));
            }
        }
    }
    // A deposed leader believes in its leadership for a while, but runs no tasks meanwhile.
    if let Some(leader) = leaders.into_iter().max_by_key(|(tasks, _)| newest(tasks)) {
        return Ok(leader);
    }
    let problem = refused.unwrap_or_else(|| Problem::new(Code::NoLeader, details));
    Err(session.failure(problem))
}

fn table(tasks: &[Task], now: Timestamp) -> Table {
    Table::of(tasks)
        .text("TASK", |task| &task.name)
        .text("INTERVAL", |task| text::duration(task.interval_ms))
        .text("LAST SUCCESS", |task| succeeded(task, now))
        .number("RUNS", |task| text::count(task.runs))
        .number("FAILURES", |task| text::count(task.failures))
        .number("RECLAIMED", |task| text::count(task.reclaimed))
        .spare("DURATION", 1, |task| text::or_dash(task.duration_us.map(duration)))
        .table()
}

fn succeeded(task: &Task, now: Timestamp) -> String {
    text::or_dash(task.succeeded_at.map(|at| format!("{} ago", text::age(at, now))))
}

/// A duration in milliseconds with one decimal.
fn duration(microseconds: u64) -> String {
    let tenths = microseconds.saturating_add(50) / 100;
    format!("{}.{} ms", tenths / 10, tenths % 10)
}

fn shown(task: &Task, member: &str, now: Timestamp) -> String {
    let mut fields = Fields::default();
    fields.line("task", &task.name);
    fields.line("purpose", &task.purpose);
    fields.line("interval", text::duration(task.interval_ms));
    fields.line("last run", text::or_dash(task.started_at.map(text::moment)));
    fields.line("last success", succeeded(task, now));
    fields.line("duration", text::or_dash(task.duration_us.map(duration)));
    fields.line("runs", format!("{}, {} failed", text::count(task.runs), text::count(task.failures)));
    fields.line("reclaimed", text::count(task.reclaimed));
    fields.line("leader", member);
    fields.text()
}
