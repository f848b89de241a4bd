//! Session of a command: its servers, the defaults of names, and its output.

use std::cell::RefCell;
use std::io::Write;

use ipam_api::client::Client;
use ipam_api::name::ResourceName;
use ipam_api::resource::EndpointKey;
use ipam_api::time::Timestamp;
use ipam_api::{Name, ObjectName};

use crate::client::curl;
use crate::output::error::Failure;
use crate::output::format::Format;
use crate::output::screen::{self, Tone};
use crate::settings::connection::Settings;
use crate::settings::environment::Environment;
use crate::settings::flags::{GlobalArguments, PlaceArguments, ReadingArguments, WritingArguments};

/// Session of one command.
pub(crate) struct Session {
    /// Client that sends each request to any of the servers.
    pub(crate) client: Client,
    /// Servers and credentials.
    pub(crate) settings: Settings,
    /// Flags of reads.
    pub(crate) reading: ReadingArguments,
    /// Flags of writes.
    pub(crate) writing: WritingArguments,
    /// Format of data.
    pub(crate) format: Format,
    pub(crate) headers: bool,
    quiet: bool,
    debug: bool,
    /// True if the user can be prompted.
    pub(crate) interactive: bool,
    /// Scope flags that the command line specifies.
    pub(crate) said: PlaceArguments,
    color: bool,
    pub(crate) environment: Environment,
    output: RefCell<Box<dyn Write>>,
}

impl Session {
    /// Creates a session from the global flags; `output` receives the data.
    pub(crate) fn new(
        global: &GlobalArguments,
        settings: Settings,
        environment: &Environment,
        output: Box<dyn Write>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            client: Client::with(&settings.servers, &settings.options)?,
            said: global.connection.place.clone(),
            settings,
            reading: global.reading.clone(),
            writing: global.writing.clone(),
            format: global.output.format.clone(),
            headers: !global.output.no_headers,
            quiet: global.output.quiet,
            debug: global.output.debug,
            interactive: !global.writing.no_input && environment.attended,
            color: global.output.color.is_on(environment.terminal),
            environment: environment.clone(),
            output: RefCell::new(output),
        })
    }

    /// Creates a client of one server. If all specified servers use TLS, a server without TLS doesn't get the
    /// token, because another member may have reported its URL.
    pub(crate) fn client_of(&self, server: &str) -> Result<Client, ipam_api::Problem> {
        let open = |server: &str| server.trim_start().starts_with("http://");
        let mut options = self.settings.options.clone();
        if open(server) && !self.settings.servers.iter().any(|named| open(named)) {
            options.token_file = None;
        }
        Client::with(&[server], &options)
    }

    /// Reference time of ages.
    pub(crate) fn now(&self) -> Timestamp {
        self.environment.now.unwrap_or_else(Timestamp::now)
    }

    /// Selected network, or `default`.
    pub(crate) fn network_or_default(&self) -> Name {
        self.settings.network.clone().unwrap_or_else(Name::default_name)
    }

    /// Realm and namespace of endpoint names without them.
    pub(crate) fn home(&self) -> (Name, ObjectName) {
        (self.settings.realm.clone(), self.settings.namespace.clone())
    }

    /// Parses `kind/name` and its longer forms; the session's realm and namespace complete the short forms.
    pub(crate) fn endpoint_key(&self, text: &str) -> Result<EndpointKey, Failure> {
        let mut key: EndpointKey = text.parse::<EndpointKey>().map_err(|problem| {
            Failure::usage(
                problem.detail,
                "For example: host/db-07, or pod/web/frontend-7 with its namespace.",
            )
        })?;
        let parts = text.split('/').count();
        if parts < 4 {
            key.realm = self.settings.realm.clone();
        }
        if parts < 3 {
            key.namespace = self.settings.namespace.clone();
        }
        self.check_realm(text, &key.realm)?;
        self.check_namespace(text, &key.namespace)?;
        Ok(key)
    }

    /// Parses `name` or `realm/name`; the session's realm completes the short form.
    pub(crate) fn in_realm(&self, text: &str) -> Result<ResourceName, Failure> {
        let whole =
            if text.contains('/') { text.to_owned() } else { format!("{}/{text}", self.settings.realm) };
        let name = ResourceName::new(&whole).map_err(Failure::from)?;
        if let Some((realm, _)) = name.parts() {
            self.check_realm(text, &realm)?;
        }
        Ok(name)
    }

    /// Writes data to standard output.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        if !self.format.is_for_people() {
            return self.print_bytes(text.as_bytes());
        }
        self.print_bytes(screen::folded(text, self.environment.width).as_bytes())
    }

    /// Writes data to standard output, terminated by a newline.
    pub(crate) fn print_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let bytes = screen::data(bytes, &self.format);
        let mut output = self.output.borrow_mut();
        output.write_all(&bytes)?;
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            writeln!(output)?;
        }
        Ok(output.flush()?)
    }

    /// Writes a message to standard error, unless `--quiet` is specified.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            screen::line(text);
        }
    }

    /// Writes a message to standard error, if the output format is for people.
    pub(crate) fn tell(&self, text: &str) {
        if self.format.is_for_people() {
            self.say(text);
        }
    }

    /// Shows a request as a curl command, with `--debug`.
    pub(crate) fn debug(&self, server: &str, call: &ipam_api::client::Call) {
        if self.debug {
            screen::line(&curl::line(server, call, &self.settings.options));
        }
    }

    /// Colours a word, if colours are enabled.
    pub(crate) fn paint(&self, text: &str, tone: Tone) -> String {
        tone.paint(text, self.color)
    }
}
