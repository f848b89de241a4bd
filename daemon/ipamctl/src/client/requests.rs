//! Sends reads and writes to the servers.

use std::time::Duration;

use ipam_api::brand::{
    HEADER_CHANGE_COMMENT, HEADER_DRY_RUN, HEADER_IDEMPOTENCY_KEY, HEADER_IDEMPOTENCY_REPLAYED,
};
use ipam_api::client::{Answer, Call, with_query};
use ipam_api::problem::Applied;
use ipam_api::{Code, Problem};

use crate::client::session::Session;
use crate::output::error::Failure;
use crate::output::{interrupt, text};
use crate::settings::flags::Consistency;
use crate::settings::idempotency;

/// Wait after which a message names the servers that the command waits for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Safe way to repeat a write whose outcome is unknown.
#[derive(Debug, Clone)]
pub(crate) enum Again {
    /// By an idempotency key: the same command with that key is safe.
    ByKey,
    /// By an identical request, which is idempotent without a key; the text is the advice for the user.
    Same(String),
}

/// Appends the parameters that have a value to a path.
pub(crate) fn with_all<'a>(
    path: &str,
    parameters: impl IntoIterator<Item = (&'a str, Option<String>)>,
) -> String {
    let given = parameters.into_iter().filter_map(|(name, value)| Some((name, value?)));
    given.fold(path.to_owned(), |path, (name, value)| with_query(&path, name, &value))
}

impl Session {
    /// Adds the requested consistency and minimum revision to a path.
    pub(crate) fn reading_path(&self, path: &str) -> String {
        let stale = (self.reading.consistency == Consistency::Stale).then(|| "stale".to_owned());
        let revision = self.reading.at_least_revision.map(|revision| revision.to_string());
        with_all(path, [("consistency", stale), ("at_least_revision", revision)])
    }

    /// Sends a read.
    pub(crate) async fn read(&self, path: &str) -> Result<Answer, Failure> {
        let call = Call::get(self.reading_path(path)).within(self.reading.timeout);
        self.send(call).await.map_err(|problem| self.failure(problem))
    }

    /// Sends a write; with `--dry-run`, only determines its effect.
    pub(crate) async fn write(&self, call: Call, again: Again) -> Result<Answer, Failure> {
        let writing = &self.writing;
        let mut call = call.within(self.reading.timeout);
        if let Some(comment) = &writing.comment {
            call = call.header(HEADER_CHANGE_COMMENT, comment)?;
        }
        if let Some(manager) = &writing.manager {
            call = call.query("manager", manager);
        }
        if writing.take_over {
            call = call.query("take_over", "true");
        }
        if writing.dry_run {
            return self.try_out(call).await;
        }
        let key = match (&writing.idempotency_key, &again) {
            (Some(key), _) => Some(key.clone()),
            (None, Again::ByKey) => Some(idempotency::new_key()),
            (None, Again::Same(_)) => None,
        };
        let repeat = match (again, &key) {
            (Again::Same(advice), None) => advice,
            (_, key) => idempotency::repeated(&self.environment.words, key.as_deref().unwrap_or_default()),
        };
        if let Some(key) = key {
            call = call.header(HEADER_IDEMPOTENCY_KEY, &key)?.repeatable();
        }
        interrupt::change_is_sent();
        let answer = self.send(call).await.map_err(|problem| self.failure(problem).repeat_by(repeat))?;
        if answer.header(HEADER_IDEMPOTENCY_REPLAYED).is_some() {
            self.say("already applied with this idempotency key; the original response follows.");
        }
        Ok(answer)
    }

    /// Sends a read-only request with a body.
    pub(crate) async fn ask(&self, call: Call) -> Result<Answer, Failure> {
        let call = call.within(self.reading.timeout).repeatable().slow();
        self.send(call).await.map_err(|problem| self.failure(problem))
    }

    /// Sends a write as a dry run, whether or not `--dry-run` was specified.
    pub(crate) async fn preview(&self, call: Call) -> Result<Answer, Failure> {
        self.try_out(call.within(self.reading.timeout)).await
    }

    /// Sends a write as a dry run. A transport failure changes nothing either.
    async fn try_out(&self, call: Call) -> Result<Answer, Failure> {
        let call = call.query("dry_run", "true").repeatable().slow();
        let answer = self.send(call).await.map_err(|mut problem| {
            problem.applied = Applied::No;
            self.failure(problem)
        })?;
        if answer.header(HEADER_DRY_RUN) == Some("true") {
            return Ok(answer);
        }
        // Servers reject unknown query parameters, so this should not happen. If a server ignored `dry_run`,
        // the change may have been applied, which the user must know.
        Err(Problem::new(Code::NotImplemented, "the server does not confirm a dry run")
            .help("Check whether the change was made.")
            .maybe_applied()
            .into())
    }

    /// Sends a request to one specific server.
    pub(crate) async fn ask_one(&self, server: &str, call: Call) -> Result<Answer, Problem> {
        self.debug(server, &call);
        self.client_of(server)?.send(call).await
    }

    async fn send(&self, call: Call) -> Result<Answer, Problem> {
        self.debug(self.settings.servers.first().map(String::as_str).unwrap_or_default(), &call);
        let limit = text::duration(text::milliseconds(self.reading.timeout));
        let notice = || {
            self.say(&format!(
                "waiting for {} (up to {limit}; Ctrl-C to stop waiting) …",
                self.settings.servers.join(", ")
            ));
        };
        if self.environment.attended {
            noticed(self.client.send(call), PATIENCE, notice).await
        } else {
            self.client.send(call).await
        }
    }

    /// Converts a problem to a failure, with the origin of the server list if no server was reachable.
    pub(crate) fn failure(&self, problem: Problem) -> Failure {
        let unreachable = problem.code == Code::Unreachable;
        let failure = Failure::from(problem);
        if unreachable { failure.about_servers(self.settings.origin.clone()) } else { failure }
    }

    /// Returns the participle itself, or `would be …` in a dry run.
    pub(crate) fn tense(&self, participle: &str) -> String {
        if self.writing.dry_run { format!("would be {participle}") } else { participle.to_owned() }
    }

    /// Returns ` at revision 7`; empty in a dry run or without a revision.
    pub(crate) fn at_revision(&self, answer: &Answer) -> String {
        match answer.etag.or(answer.revision) {
            Some(revision) if !self.writing.dry_run => format!(" at revision {revision}"),
            _ => String::new(),
        }
    }
}

/// Waits for a future, and calls `notice` once the wait exceeds `patience`.
async fn noticed<T>(wait: impl Future<Output = T>, patience: Duration, notice: impl FnOnce()) -> T {
    let mut wait = std::pin::pin!(wait);
    match tokio::time::timeout(patience, &mut wait).await {
        Ok(done) => done,
        Err(_) => {
            notice();
            wait.await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wait_names_its_reason() {
        let (told, waits) = tokio::sync::oneshot::channel();
        // The future completes only after the notice.
        noticed(waits, Duration::from_millis(1), || told.send(()).unwrap()).await.unwrap();
        noticed(async {}, Duration::from_secs(3600), || panic!("nothing was waited for")).await;
    }

    #[test]
    fn a_cursor_is_escaped() {
        assert_eq!(with_query("/v1/pools", "limit", "5"), "/v1/pools?limit=5");
        assert_eq!(
            with_query("/v1/pools?limit=5", "cursor", "a+b/="),
            "/v1/pools?limit=5&cursor=a%2Bb%2F%3D"
        );
    }
}
