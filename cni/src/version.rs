//! Versions of the CNI specification that the plugin supports.

use ipam_api::name::shown;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::fail::{self, Failure};

ipam_api::named_enum! {
/// Version of the CNI specification. Later ones compare greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CniVersion {
    /// 0.1.0, which a configuration without a version has.
    V010 = "0.1.0",
    /// 0.2.0, with the VERSION operation.
    V020 = "0.2.0",
    /// 0.3.0, with a list of addresses.
    V030 = "0.3.0",
    /// 0.3.1
    V031 = "0.3.1",
    /// 0.4.0, with CHECK.
    V040 = "0.4.0",
    /// 1.0.0, without the family in the addresses.
    V100 = "1.0.0",
    /// 1.1.0, with GC and STATUS.
    V110 = "1.1.0",
}
}

impl CniVersion {
    /// Latest version: the default of VERSION, and of errors before the configuration is read.
    pub const LATEST: CniVersion = Self::V110;

    /// Version of a network configuration. Exact: 1.1 is not 1.1.0.
    ///
    /// # Errors
    /// Code 6 if it isn't text, code 1 if it is unsupported.
    pub fn of(document: &Map<String, Value>) -> Result<Self, Failure> {
        let text = match document.get("cniVersion") {
            None | Some(Value::Null) => "",
            Some(Value::String(text)) => text,
            Some(_) => {
                return Err(Failure::new(
                    fail::DECODE,
                    "cniVersion can't be read",
                    "it must be a text such as \"1.1.0\"",
                ));
            }
        };
        if text.is_empty() {
            return Ok(Self::V010);
        }
        Self::ALL.into_iter().find(|version| version.as_str() == text).ok_or_else(|| {
            let known: Vec<String> = Self::ALL.iter().map(|version| format!("\"{version}\"")).collect();
            Failure::new(
                fail::INCOMPATIBLE_VERSION,
                "incompatible CNI versions",
                format!("config is {}, plugin supports [{}]", shown(text), known.join(" ")),
            )
        })
    }
}

impl Serialize for CniVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
