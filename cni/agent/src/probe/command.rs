//! `ipam-agent probe`: asks the links of this host for addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::process::ExitCode;

use clap::Args;
use ipam_api::problem::exit;
use ipam_api::screen::clean;
use pnet_base::MacAddr;
use serde::Serialize;

use super::{Interface, Interfaces, Outcome, ProbeError, Purpose, probe};
use crate::output::Output;

/// Flags of the command.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: 0 if all addresses are silent (with --gateway: if all answer), otherwise 7.

Examples:
  ipam-agent probe 10.0.0.7 2001:db8::7         does another host use these addresses?
  ipam-agent probe --interface eth1 10.0.0.7    on a link without a prefix of this host
  ipam-agent probe --gateway 10.0.0.1           is the gateway reachable?
  ipam-agent probe -o json 10.0.0.7"
)]
pub struct Arguments {
    /// Addresses, of either family
    #[arg(required = true, value_name = "ADDRESS")]
    addresses: Vec<IpAddr>,
    /// Interface to probe on [default: the one with the longest prefix that contains the address]
    #[arg(short, long, value_name = "IF")]
    interface: Option<String>,
    /// Expect an answer from each address
    #[arg(long)]
    gateway: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// Document of `-o json`.
#[derive(Debug, Serialize)]
struct Report {
    probes: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    address: IpAddr,
    interface: String,
    result: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<MacAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trip_us: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Answered,
    Silent,
}

/// Runs the command.
#[must_use]
pub fn main(arguments: &Arguments) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let report = match runtime {
        Ok(runtime) => runtime.block_on(collect(arguments)),
        Err(error) => {
            eprintln!("ipam-agent: {error}");
            return ExitCode::FAILURE;
        }
    };
    let report = match report {
        Ok(report) => report,
        Err(error) => {
            eprintln!("ipam-agent: {}", clean(&error.to_string()));
            return ExitCode::from(error.exit());
        }
    };
    match arguments.output {
        Output::Table => print!("{}", clean(&table(&report))),
        Output::Json => println!("{}", serde_json::to_string_pretty(&report).unwrap_or_default()),
    }
    let wanted = if arguments.gateway { Verdict::Answered } else { Verdict::Silent };
    let is_wanted = report.probes.iter().all(|line| line.result == wanted);
    ExitCode::from(if is_wanted { exit::DONE } else { exit::FOUND })
}

/// Probes the addresses, one interface after the other.
async fn collect(arguments: &Arguments) -> Result<Report, ProbeError> {
    let interfaces = Interfaces::read().map_err(ProbeError::Interfaces)?;
    let mut links: BTreeMap<&str, (&Interface, BTreeSet<IpAddr>)> = BTreeMap::new();
    for address in &arguments.addresses {
        let interface = link(&interfaces, arguments.interface.as_deref(), *address)?;
        let (_, addresses) = links.entry(&interface.name).or_insert((interface, BTreeSet::new()));
        addresses.insert(*address);
    }
    let purpose = if arguments.gateway { Purpose::Gateway } else { Purpose::Conflict };
    let mut probes = Vec::new();
    for (interface, addresses) in links.into_values() {
        let outcomes = probe(interface, &interfaces.macs(), &addresses, purpose).await?;
        probes.extend(outcomes.into_iter().map(|(address, outcome)| line(interface, address, outcome)));
    }
    Ok(Report { probes })
}

/// Interface that is named, or else the one on whose link the address is.
fn link<'a>(
    interfaces: &'a Interfaces,
    name: Option<&str>,
    address: IpAddr,
) -> Result<&'a Interface, ProbeError> {
    match name {
        Some(name) => interfaces.named(name).ok_or_else(|| ProbeError::UnknownInterface {
            name: name.to_owned(),
            present: interfaces.names().collect::<Vec<_>>().join(", "),
        }),
        None => interfaces.covering(address).ok_or(ProbeError::NoInterface(address)),
    }
}

fn line(interface: &Interface, address: IpAddr, outcome: Outcome) -> Line {
    let interface = interface.name.clone();
    match outcome {
        Outcome::Answered { mac, round_trip, .. } => {
            let round_trip_us = u64::try_from(round_trip.as_micros()).ok();
            Line { address, interface, result: Verdict::Answered, mac: Some(mac), round_trip_us }
        }
        Outcome::Silent => {
            Line { address, interface, result: Verdict::Silent, mac: None, round_trip_us: None }
        }
    }
}

fn table(report: &Report) -> String {
    let widest = report.probes.iter().map(|line| line.address.to_string().len()).max().unwrap_or_default();
    let width = widest.max("ADDRESS".len());
    let mut text = String::new();
    let mut row = |cells: [&str; 5]| {
        let [address, interface, result, mac, round_trip] = cells;
        let line = format!("{address:<width$}  {interface:<15}  {result:<8}  {mac:<17}  {round_trip}");
        let _ = writeln!(text, "{}", line.trim_end());
    };
    row(["ADDRESS", "INTERFACE", "RESULT", "MAC", "ROUND TRIP"]);
    for line in &report.probes {
        let result = match line.result {
            Verdict::Answered => "answered",
            Verdict::Silent => "silent",
        };
        let mac = line.mac.map(|mac| mac.to_string()).unwrap_or_default();
        let round_trip = line.round_trip_us.map(|us| format!("{us} µs")).unwrap_or_default();
        row([&line.address.to_string(), &line.interface, result, &mac, &round_trip]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_address() {
        let line = |address: &str, mac| Line {
            address: address.parse().unwrap(),
            interface: "eth0".to_owned(),
            result: if mac == MacAddr::zero() { Verdict::Silent } else { Verdict::Answered },
            mac: (mac != MacAddr::zero()).then_some(mac),
            round_trip_us: (mac != MacAddr::zero()).then_some(87),
        };
        let probes =
            vec![line("10.0.0.7", MacAddr::zero()), line("2001:db8::7", MacAddr::new(2, 0, 0, 0, 0, 9))];
        let expected = "\
ADDRESS      INTERFACE        RESULT    MAC                ROUND TRIP
10.0.0.7     eth0             silent
2001:db8::7  eth0             answered  02:00:00:00:00:09  87 µs
";
        assert_eq!(table(&Report { probes }), expected);
    }
}
