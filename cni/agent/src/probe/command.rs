//! `ipam-agent probe`: probes addresses on the links of this host.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::process::ExitCode;

use clap::Args;
use ipam_api::problem::exit;
use pnet_base::MacAddr;
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::{Interface, Interfaces, Outcome, ProbeError, Purpose, probe};
use crate::output::{Output, run};

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
    #[command(flatten)]
    output: Output,
}

/// Document of `-o json`.
#[derive(Debug, Serialize)]
struct Report {
    probes: Vec<Line>,
}

#[skip_serializing_none]
#[derive(Debug, Serialize)]
struct Line {
    address: IpAddr,
    interface: String,
    result: Verdict,
    mac: Option<MacAddr>,
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
    run(async {
        let report = collect(arguments).await.map_err(|error| (error.exit(), error.to_string()))?;
        arguments.output.print(&report, table);
        let wanted = if arguments.gateway { Verdict::Answered } else { Verdict::Silent };
        let is_wanted = report.probes.iter().all(|line| line.result == wanted);
        Ok(if is_wanted { exit::DONE } else { exit::FOUND })
    })
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

/// Returns the named interface, or else the interface whose link has the address.
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
