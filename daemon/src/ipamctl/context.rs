//! What every command needs: the servers, the defaults of names, and how to print.

use std::cell::RefCell;
use std::io::{IsTerminal as _, Write};
use std::time::Duration;

use ipam_api::client::{Answer, Call, Client};
use ipam_api::limits::PAGE_ITEMS_MAX;
use ipam_api::resource::EndpointKey;
use ipam_api::{Code, Name, ObjectName, Problem};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::arguments::{Consistency, Format, GlobalArguments};
use crate::fail::Failure;
use crate::output::table::{Table, terminal_width};
use crate::output::{Tone, json};

/// What every command needs.
pub(crate) struct Context {
    /// Asks any of the servers.
    client: Client,
    /// Their addresses, as they were given.
    pub(crate) servers: Vec<String>,
    /// How long one command may wait for an answer.
    pub(crate) timeout: Duration,
    /// Whether any member's own state will do.
    stale: bool,
    /// How data is shown.
    pub(crate) format: Format,
    headers: bool,
    quiet: bool,
    /// Whether moderate questions are answered already.
    pub(crate) yes: bool,
    /// Whether somebody can be asked.
    pub(crate) interactive: bool,
    /// The network, if one was named.
    pub(crate) network: Option<Name>,
    realm: Name,
    namespace: ObjectName,
    color: bool,
    /// Columns of the terminal; none where there is no terminal.
    pub(crate) width: Option<usize>,
    output: RefCell<Box<dyn Write>>,
}

/// A list as it was read, all pages of it.
pub(crate) struct Listed<Item> {
    /// The items that were kept.
    pub(crate) items: Vec<Item>,
    /// The state that they are from.
    pub(crate) revision: u64,
    /// The same as JSON: the server's bytes where nothing was left out and one page was enough.
    pub(crate) json: Vec<u8>,
}

/// One page, its items as the server wrote them.
#[derive(Deserialize)]
struct RawPage {
    items: Vec<Box<RawValue>>,
    revision: u64,
    #[serde(default)]
    next: Option<String>,
}

impl Context {
    /// Reads the global flags; `output` is where data goes.
    pub(crate) fn new(global: &GlobalArguments, output: Box<dyn Write>) -> Result<Self, Failure> {
        let terminal = std::io::stdout().is_terminal();
        Ok(Self {
            client: Client::new(&global.servers)?,
            servers: global.servers.clone(),
            timeout: global.timeout,
            stale: global.consistency == Consistency::Stale,
            format: global.output,
            headers: !global.no_headers,
            quiet: global.quiet,
            yes: global.yes,
            interactive: !global.no_input
                && std::io::stdin().is_terminal()
                && std::io::stderr().is_terminal(),
            network: global.network.clone(),
            realm: global.realm.clone(),
            namespace: global.namespace.clone(),
            color: global.color.is_on(terminal),
            width: if terminal { terminal_width() } else { None },
            output: RefCell::new(output),
        })
    }

    /// The network that was named, or `default`.
    pub(crate) fn network_or_default(&self) -> Name {
        self.network.clone().unwrap_or_else(Name::default_name)
    }

    /// Reads `kind/name` and its longer forms; what isn't said comes from `--realm` and `--namespace`.
    pub(crate) fn endpoint_key(&self, text: &str) -> Result<EndpointKey, Failure> {
        let mut key: EndpointKey = text.parse::<EndpointKey>().map_err(|problem| {
            Failure::usage(
                problem.detail,
                "For example: host/db-07, or pod/web/frontend-7 with its namespace.",
            )
        })?;
        let parts = text.split('/').count();
        if parts < 4 {
            key.realm = self.realm.clone();
        }
        if parts < 3 {
            key.namespace = self.namespace.clone();
        }
        Ok(key)
    }

    /// Reads something.
    pub(crate) async fn read(&self, path: &str) -> Result<Answer, Failure> {
        let path = if self.stale { with_query(path, "consistency", "stale") } else { path.to_owned() };
        Ok(self.client.send(Call::get(path).within(self.timeout)).await?)
    }

    /// Changes something. `repeat` says what to do when the outcome is unknown.
    pub(crate) async fn write(&self, call: Call, repeat: impl Into<String>) -> Result<Answer, Failure> {
        let sent = self.client.send(call.within(self.timeout)).await;
        sent.map_err(|problem| Failure::from(problem).repeat_by(repeat))
    }

    /// Reads all pages of a list and keeps the items that `keep` wants.
    pub(crate) async fn list<Item: DeserializeOwned>(
        &self,
        path: &str,
        keep: impl Fn(&Item) -> bool,
    ) -> Result<Listed<Item>, Failure> {
        let first = with_query(path, "limit", &PAGE_ITEMS_MAX.to_string());
        let mut query = first.clone();
        let (mut items, mut kept, mut all) = (Vec::new(), Vec::new(), true);
        loop {
            let answer = self.read(&query).await?;
            let page: RawPage = answer.read()?;
            for raw in page.items {
                let item: Item = serde_json::from_str(raw.get()).map_err(unreadable)?;
                if keep(&item) {
                    items.push(item);
                    kept.push(raw);
                } else {
                    all = false;
                }
            }
            match page.next {
                Some(cursor) => query = with_query(&first, "cursor", &cursor),
                None => {
                    let json =
                        if all && query == first { answer.body } else { json::joined(&kept, page.revision) };
                    return Ok(Listed { items, revision: page.revision, json });
                }
            }
        }
    }

    /// Writes data to standard output.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        self.print_bytes(text.as_bytes())
    }

    /// Writes data to standard output and ends it with a line's end.
    pub(crate) fn print_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut output = self.output.borrow_mut();
        output.write_all(bytes)?;
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            writeln!(output)?;
        }
        Ok(output.flush()?)
    }

    /// Writes a table to standard output.
    pub(crate) fn print_table(&self, table: &Table) -> Result<(), Failure> {
        self.print(&table.render(self.headers, self.width))
    }

    /// Says something to whoever sits at the terminal.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            crate::say(text);
        }
    }

    /// Tells that something was done: a sentence for people, the server's JSON or the name for scripts.
    pub(crate) fn done(&self, answer: &Answer, name: &str, sentence: &str) -> Result<(), Failure> {
        match self.format {
            Format::Json => self.print_bytes(&answer.body)?,
            Format::Name => self.print(name)?,
            Format::Table | Format::Wide => self.say(sentence),
        }
        Ok(())
    }

    /// Colours a word, where colours are wanted.
    pub(crate) fn paint(&self, text: &str, tone: Tone) -> String {
        tone.paint(text, self.color)
    }
}

/// Puts a parameter behind a path.
pub(crate) fn with_query(path: &str, key: &str, value: &str) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    let mut query = format!("{path}{separator}{key}=");
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            query.push(char::from(byte));
        } else {
            query.push_str(&format!("%{byte:02X}"));
        }
    }
    query
}

fn unreadable(error: serde_json::Error) -> Failure {
    Problem::new(Code::Unreachable, format!("the server's answer can't be read: {error}"))
        .help("Check that the address is ipamd's and that its version fits.")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_escaped() {
        assert_eq!(with_query("/v1/pools", "limit", "5"), "/v1/pools?limit=5");
        assert_eq!(
            with_query("/v1/pools?limit=5", "cursor", "a+b/="),
            "/v1/pools?limit=5&cursor=a%2Bb%2F%3D"
        );
    }
}
