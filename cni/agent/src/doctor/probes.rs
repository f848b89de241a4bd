//! Probes of the agent: its permission for them, and the links of the node.

use ipam_api::agent::DoctorCheck;

use super::{ok, warning};
use crate::config::Config;
use crate::probe::ProbeError;
use crate::probing::link_report::{beyond, missing, read};
use crate::probing::links::Links;
use crate::probing::wire::Wire;

/// Checks that this process may probe.
pub(super) fn permission(config: &Config, wire: &impl Wire) -> DoctorCheck {
    let name = "probes";
    if !config.probes {
        return ok(name, "switched off by probes = false".to_owned());
    }
    match wire.permitted() {
        Ok(()) => ok(name, "the agent may probe addresses".to_owned()),
        Err(error) => warning(
            name,
            format!("the agent can't probe addresses: {error}"),
            "Permit CAP_NET_RAW in the unit, as in ipam-agent.service, or set probes = false.",
        ),
    }
}

/// Checks the links; `None` if probes are switched off.
pub(super) async fn links(config: &Config, wire: &impl Wire) -> Option<DoctorCheck> {
    if !config.probes {
        return None;
    }
    Some(of(&read(config, wire).await))
}

fn of(links: &Result<Links, ProbeError>) -> DoctorCheck {
    let name = "links";
    let links = match links {
        Ok(links) => links,
        Err(error) => return warning(name, error.to_string(), "See the log of the agent."),
    };
    let (_, surplus) = links.reported();
    let mut texts: Vec<String> = links.missing().iter().map(|name| format!("no interface {name}")).collect();
    for link in links.probed() {
        let cidrs = link.cidrs.iter().map(|cidr| format!("{} {} {cidr}", link.interface, link.network));
        texts.extend(cidrs);
    }
    let is_empty = texts.is_empty();
    let detail = if is_empty { "no Ethernet with a prefix is up".to_owned() } else { texts.join(", ") };
    if missing(links).is_some() {
        warning(name, detail, "Correct the names in [[link]], or create the interfaces.")
    } else if let Some(surplus) = beyond(surplus) {
        warning(name, surplus, "Name the links that the cluster is to probe in [[link]].")
    } else if is_empty {
        warning(name, detail, "Name the interfaces and their prefixes in [[link]], or set probes = false.")
    } else {
        ok(name, detail)
    }
}

#[cfg(test)]
mod tests {
    use ipam_api::agent::Verdict;

    use super::*;
    use crate::config::LinkConfig;
    use crate::probing::links::Found;

    fn found(name: &str, network: &str) -> Found {
        let networks = vec![network.parse().unwrap()];
        Found {
            name: name.to_owned(),
            networks,
            is_up: true,
            mac: Some(pnet_base::MacAddr(2, 0, 0, 0, 0, 1)),
        }
    }

    #[test]
    fn links_are_listed_and_missing_interfaces_are_a_warning() {
        let all = [found("eth0", "10.0.0.5/24"), found("eth1", "2001:db8::5/64")];
        let check = of(&Ok(Links::new(&[], &all)));
        assert_eq!((check.verdict, check.help.as_str()), (Verdict::Ok, ""));
        assert_eq!(check.detail, "eth0 default 10.0.0.0/24, eth1 default 2001:db8::/64");
        let link = |interface: &str| {
            let network = "blue".parse().unwrap();
            LinkConfig { interface: interface.parse().unwrap(), network, cidrs: None }
        };
        let check = of(&Ok(Links::new(&[link("eth1"), link("eth9")], &all)));
        assert_eq!(check.verdict, Verdict::Warning);
        assert_eq!(check.detail, "no interface eth9, eth1 blue 2001:db8::/64");
        assert_eq!(of(&Ok(Links::new(&[], &[]))).verdict, Verdict::Warning);
        let unknown = of(&Err(ProbeError::NotPermitted));
        assert!(unknown.verdict == Verdict::Warning && unknown.detail.contains("CAP_NET_RAW"), "{unknown:?}");
    }
}
