//! Links that the heartbeat reports, and the reasons for which it reports none.

use ipam_api::probe::Link;

use crate::config::Config;
use crate::probe::ProbeError;
use crate::probing::links::Links;
use crate::probing::wire::Wire;

/// Reads the links of this node.
///
/// # Errors
/// The reason why the interfaces are unknown.
pub async fn read(config: &Config, wire: &impl Wire) -> Result<Links, ProbeError> {
    Ok(Links::new(&config.links, &wire.interfaces().await?))
}

/// Source of the links of each heartbeat. It logs each reason for missing links once.
#[derive(Debug, Default)]
pub struct LinkReport {
    told: Option<String>,
}

impl LinkReport {
    /// Links that this node can probe now: none if it doesn't probe.
    pub async fn links(&mut self, config: &Config, wire: &impl Wire) -> Vec<Link> {
        if !config.probes {
            return Vec::new();
        }
        let links = match wire.permitted() {
            Ok(()) => read(config, wire).await,
            Err(error) => Err(error),
        };
        let (links, reason) = match links {
            Ok(links) => reported(&links),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        self.tell(reason);
        links
    }

    fn tell(&mut self, reason: Option<String>) {
        if self.told == reason {
            return;
        }
        match &reason {
            Some(reason) => tracing::warn!("the heartbeat lacks links: {reason}"),
            None => tracing::info!("the heartbeat has all links"),
        }
        self.told = reason;
    }
}

fn reported(links: &Links) -> (Vec<Link>, Option<String>) {
    let (reported, surplus) = links.reported();
    (reported, missing(links).or_else(|| beyond(surplus)))
}

/// Names the configured interfaces that don't exist.
#[must_use]
pub fn missing(links: &Links) -> Option<String> {
    let names: Vec<&str> = links.missing().iter().map(|name| name.as_str()).collect();
    (!names.is_empty()).then(|| format!("there is no interface {}", names.join(", ")))
}

/// Counts the links beyond the limit.
#[must_use]
pub fn beyond(surplus: usize) -> Option<String> {
    (surplus > 0).then(|| format!("{surplus} links exceed the limit; name the useful ones in [[link]]"))
}
