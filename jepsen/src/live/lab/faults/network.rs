//! Faults of the network: cut links, and impaired frames.

use crate::live::lab::Lab;
use crate::live::network::{Count, Impairment};
use crate::nemesis::{Kind, Link};

impl Lab {
    pub(in crate::live::lab) fn cut_links(&mut self, links: &[Link]) -> Vec<String> {
        self.frames_before = self.cut_frames(links);
        self.network().cut(links);
        vec![format!("cut links: {}", links.len())]
    }

    pub(in crate::live::lab) fn heal_links(&mut self, links: &[Link]) -> Vec<String> {
        self.network().heal(links);
        let dropped = self.cut_frames(links).saturating_sub(self.frames_before);
        if dropped == 0 { Vec::new() } else { vec![format!("dropped frames: {dropped}")] }
    }

    /// Frames that cuts of these links have dropped so far.
    fn cut_frames(&self, links: &[Link]) -> u64 {
        let flows = self.network().flows();
        links.iter().filter_map(|link| flows.get(link)).map(|flow| flow.count.cut).sum()
    }

    pub(in crate::live::lab) fn impair(&mut self, hosts: &[String], kind: &Kind) -> Vec<String> {
        self.count_before = self.count(hosts);
        for host in hosts {
            self.network().impair(host, impairment(kind));
        }
        vec![format!("impaired hosts: {}", hosts.join(" "))]
    }

    pub(in crate::live::lab) fn lift(&mut self, hosts: &[String], kind: &Kind) -> Vec<String> {
        for host in hosts {
            self.network().lift(host, &impairment(kind));
        }
        let count = self.count(hosts).since(&self.count_before);
        let figures = [
            ("delayed", count.delayed),
            ("lost", count.lost),
            ("duplicated", count.duplicated),
            ("reordered", count.reordered),
            ("corrupted", count.corrupted),
        ];
        let seen = figures.into_iter().filter(|(_, number)| *number > 0);
        seen.map(|(name, number)| format!("{name} frames: {number}")).collect()
    }

    /// Frames from and to these hosts so far; those between two of them count twice.
    fn count(&self, hosts: &[String]) -> Count {
        let mut sum = Count::default();
        for (link, flow) in self.network().flows() {
            for host in [&link.from, &link.to] {
                if hosts.contains(host) {
                    sum += flow.count;
                }
            }
        }
        sum
    }
}

fn impairment(kind: &Kind) -> Impairment {
    match *kind {
        Kind::Packets {
            delay_ms,
            jitter_ms,
            loss_percent,
            duplicate_percent,
            reorder_percent,
            corrupt_percent,
            ..
        } => Impairment {
            delay_ms,
            jitter_ms,
            loss_percent,
            duplicate_percent,
            reorder_percent,
            corrupt_percent,
        },
        _ => Impairment::default(),
    }
}
