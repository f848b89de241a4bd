//! Probes that addresses of a network, a subnet or a pool need: as flags and as text.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use ipam_api::probe::Probing;

use crate::output::text::{self, milliseconds, parse_duration};

/// Value of a flag that restores the setting of the level above.
const INHERIT: &str = "inherit";

/// Settings of probes. One that is not given stays as it is.
#[derive(Debug, Default, Args)]
pub(crate) struct ProbingArguments {
    /// Probe addresses for other hosts before use: true, false, or inherit for the setting of the level above
    #[arg(long, value_name = "BOOL|inherit")]
    probe_conflicts: Option<Setting<bool>>,
    /// Fail an ADD while the gateway doesn't answer: true, false or inherit
    #[arg(long, value_name = "BOOL|inherit")]
    probe_gateway: Option<Setting<bool>>,
    /// Validity of probes ahead of requests, 10s to 1d, or inherit [default of networks: 10m]
    #[arg(long, value_name = "DURATION|inherit", value_parser = parse_valid)]
    probe_valid: Option<Setting<Duration>>,
}

/// Value of an optional field, or the setting of the level above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting<Value> {
    Own(Value),
    Inherited,
}

impl<Value> Setting<Value> {
    fn value(self) -> Option<Value> {
        match self {
            Self::Own(value) => Some(value),
            Self::Inherited => None,
        }
    }
}

impl FromStr for Setting<bool> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "true" => Ok(Self::Own(true)),
            "false" => Ok(Self::Own(false)),
            INHERIT => Ok(Self::Inherited),
            _ => Err("use true, false or inherit".to_owned()),
        }
    }
}

fn parse_valid(text: &str) -> Result<Setting<Duration>, String> {
    if text == INHERIT { Ok(Setting::Inherited) } else { parse_duration(text).map(Setting::Own) }
}

impl ProbingArguments {
    /// Writes the specified settings into a field.
    pub(crate) fn apply(&self, probing: &mut Probing) {
        if let Some(conflicts) = self.probe_conflicts {
            probing.conflicts = conflicts.value();
        }
        if let Some(gateway) = self.probe_gateway {
            probing.gateway = gateway.value();
        }
        if let Some(valid) = self.probe_valid {
            probing.valid_ms = valid.value().map(milliseconds);
        }
    }
}

/// Describes the settings that a level overrides, on one line; empty without any.
pub(crate) fn shown(probing: &Probing) -> String {
    let yes = |is: bool| if is { "yes" } else { "no" };
    let said = [
        probing.conflicts.map(|is| format!("conflicts {}", yes(is))),
        probing.gateway.map(|is| format!("gateway {}", yes(is))),
        probing.valid_ms.map(|valid_ms| format!("valid {}", text::duration(valid_ms))),
    ];
    said.into_iter().flatten().collect::<Vec<_>>().join("   ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_set_and_unset_one_by_one() {
        let mut probing = Probing::default();
        assert_eq!(shown(&probing), "");
        let arguments = ProbingArguments {
            probe_conflicts: Some(Setting::Own(true)),
            probe_gateway: Some(Setting::Own(false)),
            probe_valid: parse_valid("10m").ok(),
        };
        arguments.apply(&mut probing);
        assert_eq!(shown(&probing), "conflicts yes   gateway no   valid 10m");
        let less = ProbingArguments { probe_gateway: "inherit".parse().ok(), ..Default::default() };
        less.apply(&mut probing);
        assert_eq!(shown(&probing), "conflicts yes   valid 10m");
        let less = ProbingArguments { probe_valid: parse_valid("inherit").ok(), ..Default::default() };
        less.apply(&mut probing);
        assert_eq!(probing, Probing { conflicts: Some(true), gateway: None, valid_ms: None });
        assert!("yes".parse::<Setting<bool>>().is_err() && parse_valid("soon").is_err());
    }
}
