//! Local access rules of a member: configuration and tokens file, replaced as a whole on reload.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use ipam_api::access::{NodeKey, Role};
use ipam_api::name::Name;
use ipam_api::{Selector, time::Timestamp};
use ipam_machine::command::{Grant, SecretHash, Text};
use serde::Deserialize;

/// Maximum size of a tokens file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Access settings of the configuration.
#[derive(Debug, Clone, Default)]
pub struct AccessConfig {
    /// True if anonymous callers have all rights: only on loopback, or with `insecure`.
    pub open: bool,
    /// Users of the unix socket with all rights, besides root and the daemon's own.
    pub trusted_uids: Vec<u32>,
    /// Roles of clients by the names in their certificates.
    pub clients: BTreeMap<Name, Role>,
    /// Tokens of this member alone, besides those of the cluster.
    pub tokens_file: Option<PathBuf>,
}

/// Local access rules of a member.
#[derive(Debug, Clone)]
pub struct Access(Arc<RwLock<Arc<Rules>>>);

/// Rules in force.
#[derive(Debug)]
struct Rules {
    config: AccessConfig,
    tokens: FileTokens,
}

type FileTokens = BTreeMap<SecretHash, FileToken>;

#[derive(Debug, Clone)]
struct FileToken {
    principal: Text,
    grant: Arc<Grant>,
    expires_at: Option<Timestamp>,
}

/// A tokens file that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct TokensFileError {
    path: String,
    why: String,
}

/// Rights of a token in the tokens file.
pub(crate) enum TokenStatus {
    /// Valid token.
    Known { principal: Text, grant: Arc<Grant> },
    /// Expired token.
    Expired { principal: Text },
}

impl Access {
    /// Reads the tokens file, if any.
    ///
    /// # Errors
    /// The mistake in the file, for the operator.
    pub fn new(config: AccessConfig) -> Result<Self, TokensFileError> {
        Ok(Self(Arc::new(RwLock::new(Arc::new(Rules::read(config)?)))))
    }

    /// Replaces the configuration and reads the tokens file again. After an error the old rules stay.
    ///
    /// # Errors
    /// The mistake in the file, for the operator.
    pub fn replace(&self, config: AccessConfig) -> Result<(), TokensFileError> {
        let rules = Arc::new(Rules::read(config)?);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = rules;
        Ok(())
    }

    fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// True if anonymous callers have all rights.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.rules().config.open
    }

    /// True if a user of the unix socket has all rights.
    #[must_use]
    pub fn is_trusted(&self, uid: u32) -> bool {
        uid == 0
            || uid == rustix::process::getuid().as_raw()
            || self.rules().config.trusted_uids.contains(&uid)
    }

    /// Role of a client with this name in its certificate.
    #[must_use]
    pub fn role_of_client(&self, name: &Name) -> Option<Role> {
        self.rules().config.clients.get(name).copied()
    }

    /// Status of the token with this secret hash; none if the tokens file lacks the hash.
    pub(crate) fn token(&self, secret_hash: &SecretHash) -> Option<TokenStatus> {
        let rules = self.rules();
        let token = rules.tokens.get(secret_hash)?;
        let principal = Text::clone(&token.principal);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
        Some(match token.expires_at {
            Some(Timestamp(until_ms)) if u128::from(until_ms) <= now => TokenStatus::Expired { principal },
            _ => TokenStatus::Known { principal, grant: Arc::clone(&token.grant) },
        })
    }
}

impl Rules {
    fn read(config: AccessConfig) -> Result<Self, TokensFileError> {
        let tokens = match &config.tokens_file {
            Some(path) => {
                read(path).map_err(|why| TokensFileError { path: path.display().to_string(), why })?
            }
            None => FileTokens::new(),
        };
        Ok(Self { config, tokens })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    token: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Name,
    role: Role,
    /// Hash of the secret in hexadecimal, as `ipamd hash-secret` prints it.
    secret_hash: String,
    node: Option<NodeKey>,
    #[serde(default)]
    realms: Vec<Name>,
    #[serde(default)]
    labels: Selector,
    #[serde(default)]
    allow_shared: bool,
    expires_at: Option<Timestamp>,
}

fn read(path: &Path) -> Result<FileTokens, String> {
    let metadata = std::fs::metadata(path).map_err(|error| format!("can't be read: {error}"))?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("can't be read: {error}"))?;
    // Report only the message of the error: the quoted line may contain a secret.
    let file: File = toml::from_str(&text).map_err(|error| error.message().to_owned())?;
    let mut tokens = FileTokens::new();
    for entry in file.token {
        let name = entry.name.clone();
        let hash = parse_hash(&entry.secret_hash).ok_or_else(|| {
            format!("the secret_hash of {name} must be 64 hexadecimal digits (not the secret)")
        })?;
        if (entry.role == Role::Node) != entry.node.is_some() {
            return Err(format!("token {name}: the role node, and no other, names a node"));
        }
        if entry.allow_shared && entry.realms.is_empty() {
            return Err(format!("token {name}: allow_shared widens realms, and none is named"));
        }
        let Entry { role, node, realms, labels, allow_shared, .. } = entry;
        let grant = Grant { role, node, realms, labels, allow_shared };
        // The slash distinguishes this principal from the names of the cluster's tokens.
        let principal = Text::given(format!("file/{name}"));
        let token = FileToken { principal, grant: Arc::new(grant), expires_at: entry.expires_at };
        if tokens.insert(hash, token).is_some() {
            return Err(format!("the secret_hash of {name} is there twice"));
        }
    }
    Ok(tokens)
}

/// Parses a hash of 64 hexadecimal digits.
pub(crate) fn parse_hash(text: &str) -> Option<SecretHash> {
    let mut hash = SecretHash::default();
    if text.len() != 2 * hash.len() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        // `from_str_radix` would take a sign.
        if !pair.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use ipam_machine::command::secret_hash;

    use super::*;

    fn hex(hash: SecretHash) -> String {
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn access(text: &str) -> Result<(tempfile::TempDir, Access), TokensFileError> {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("tokens.toml");
        std::fs::write(&path, text).unwrap();
        let config = AccessConfig { tokens_file: Some(path), ..AccessConfig::default() };
        Access::new(config).map(|access| (dir, access))
    }

    #[test]
    fn the_tokens_file_names_principals_and_roles() {
        let text = format!(
            "[[token]]\nname = \"ci\"\nrole = \"operator\"\nsecret_hash = \"{}\"\nlabels = \"team=web\"\n\
             [[token]]\nname = \"old\"\nrole = \"viewer\"\nsecret_hash = \"{}\"\nexpires_at = \"2020-01-01T00:00:00Z\"\n",
            hex(secret_hash("ipamd_a")),
            hex(secret_hash("ipamd_b"))
        );
        let (dir, access) = access(&text).unwrap();
        match access.token(&secret_hash("ipamd_a")) {
            Some(TokenStatus::Known { principal, grant }) => {
                assert_eq!((&*principal, grant.role), ("file/ci", Role::Operator));
            }
            _ => panic!("not known"),
        }
        assert!(matches!(access.token(&secret_hash("ipamd_b")), Some(TokenStatus::Expired { .. })));
        assert!(access.token(&secret_hash("ipamd_c")).is_none());
        // A broken file leaves the old tokens in force; an empty file removes them.
        let path = dir.path().join("tokens.toml");
        let config = || AccessConfig { tokens_file: Some(path.clone()), ..AccessConfig::default() };
        std::fs::write(&path, "token = 5").unwrap();
        assert!(access.replace(config()).is_err());
        assert!(access.token(&secret_hash("ipamd_a")).is_some());
        std::fs::write(&path, "").unwrap();
        access.replace(config()).unwrap();
        assert!(access.token(&secret_hash("ipamd_a")).is_none());
    }

    #[test]
    fn a_file_that_makes_no_sense_is_refused_without_showing_a_secret() {
        for text in [
            "nonsense = 1",
            "[[token]]\nname = \"a\"\nrole = \"admin\"\nsecret_hash = \"ipamd_secret\"",
            "[[token]]\nname = \"a\"\nrole = \"node\"\nsecret_hash = \"00\"",
            "[[token]]\nname = \"a\"\nrole = \"admin\"\nsecret = \"ipamd_secret\"",
        ] {
            let error = access(text).map(drop).unwrap_err().to_string();
            assert!(!error.contains("ipamd_secret"), "{error}");
        }
        assert_eq!(parse_hash(&"+1".repeat(32)), None);
        assert_eq!(parse_hash("é"), None);
    }
}
