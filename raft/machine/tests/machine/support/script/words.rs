//! The words of one line of a scenario.

use ipam_api::address::{AddressRange, number, parse_address};
use ipam_api::resource::Route;
use ipam_api::{Code, Family, Problem};
use ipam_machine::command::{
    AddressLimits, AutomaticPool, AutomaticRules, Controller, ControllerName, Probing, Quota,
};

/// The words of a line that are not understood yet: plain ones, and `field=value`.
#[derive(Debug)]
pub(super) struct Words(pub(super) Vec<String>);

impl Words {
    pub(super) fn of(line: &str) -> Self {
        Self(line.split_whitespace().map(str::to_owned).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next plain word.
    pub(super) fn take(&mut self) -> String {
        let next = self.0.iter().position(|word| !word.contains('=')).expect("a word is missing");
        self.0.remove(next)
    }

    pub(super) fn flag(&mut self, name: &str) -> bool {
        let found = self.0.iter().position(|word| word == name);
        found.map(|i| self.0.remove(i)).is_some()
    }

    pub(super) fn field(&mut self, name: &str) -> Option<String> {
        let found =
            self.0.iter().position(|word| word.split_once('=').is_some_and(|(field, _)| field == name))?;
        self.0.remove(found).split_once('=').map(|(_, value)| value.to_owned())
    }

    pub(super) fn all(&mut self, name: &str) -> Vec<String> {
        std::iter::from_fn(|| self.field(name)).collect()
    }

    pub(super) fn list(&mut self, name: &str) -> Vec<String> {
        self.field(name).map_or_else(Vec::new, |text| text.split(',').map(str::to_owned).collect())
    }

    /// Remaining words, divided at each `+`.
    pub(super) fn split_at_plus(&mut self) -> Vec<Words> {
        let parts = self.0.split(|word| word == "+").map(|part| Words(part.to_vec())).collect();
        self.0.clear();
        parts
    }

    /// `quota=4:COUNT,6:COUNT`, `per_application=4:COUNT`, `quota=KIND/NAME=4:COUNT`.
    pub(super) fn quota(&mut self, controller: impl Fn(&str) -> Controller) -> Quota {
        let mut quota = Quota::default();
        for text in self.all("per_application") {
            quota.per_application = limits(&text);
        }
        for text in self.all("quota") {
            match text.split_once('=') {
                Some((which, text)) => {
                    quota.applications.insert(ControllerName::of(&controller(which)), limits(text));
                }
                None => quota.whole = limits(&text),
            }
        }
        quota
    }

    /// `probe=yes|no gateway-probe=yes|no valid=MS`.
    pub(super) fn probing(&mut self) -> Probing {
        let yes = |text: String| text == "yes";
        Probing {
            conflicts: self.field("probe").map(yes),
            gateway: self.field("gateway-probe").map(yes),
            valid_ms: self.field("valid").map(|text| text.parse().unwrap()),
        }
    }

    /// `automatic [automatic-ranges=…] [automatic-exclude=…] [automatic-max=SIZE]` of a subnet.
    pub(super) fn automatic_rules(&mut self) -> Result<Option<AutomaticRules>, Problem> {
        if !self.flag("automatic") {
            return Ok(None);
        }
        let (of, exclude) = (self.list("automatic-ranges"), self.list("automatic-exclude"));
        let (ranges, exclude) = (ranges(&of)?, ranges(&exclude)?);
        let max_size = self.field("automatic-max").map(|text| text.parse().unwrap());
        Ok(Some(AutomaticRules { ranges, exclude, max_size }))
    }

    /// `automatic=SIZE replicas=COUNT [reclaim=no]`.
    pub(super) fn automatic_pool(&mut self) -> Result<Option<AutomaticPool>, Problem> {
        let Some(size) = self.field("automatic") else { return Ok(None) };
        let replicas = self.field("replicas").map_or(1, |text| text.parse().unwrap());
        let reclaim = self.field("reclaim").as_deref() != Some("no");
        Ok(Some(AutomaticPool { size: size.parse()?, replicas, reclaim }))
    }
}

/// `4:COUNT,6:COUNT`, or `none`.
fn limits(text: &str) -> AddressLimits {
    let of = |family| text.split(',').find_map(|part| part.strip_prefix(family)?.parse().ok());
    AddressLimits { ipv4: of("4:"), ipv6: of("6:") }
}

/// Ranges; `65*10.0.0.0` is 65 addresses.
pub(super) fn ranges(list: &[String]) -> Result<Vec<AddressRange>, Problem> {
    let mut all = Vec::new();
    for text in list {
        match text.split_once('*') {
            Some((count, first)) => {
                let first = parse_address(first)?;
                let address = |i| Family::of(first).address(number(first) + 2 * i);
                all.extend((0..count.parse::<u128>().unwrap()).map(address).map(AddressRange::single));
            }
            None => all.push(text.parse()?),
        }
    }
    Ok(all)
}

/// `DESTINATION>GATEWAY`.
pub(super) fn route(text: &str) -> Result<Route, Problem> {
    let (destination, gateway) = text.split_once('>').unwrap();
    // As HTTP reads it: host bits are refused further down.
    let destination = destination.parse().map_err(|_| Problem::new(Code::InvalidField, "not a CIDR"))?;
    Ok(Route { destination, gateway: parse_address(gateway)? })
}
