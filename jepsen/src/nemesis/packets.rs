//! Frames that are late, lost, doubled, out of order or damaged.

use super::choice::{between, chance, one_of, some_of};
use super::targets::{self, ANY};
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct PacketFaults;

impl Nemesis for PacketFaults {
    fn name(&self) -> &'static str {
        "packets"
    }

    fn about(&self) -> &'static str {
        "Frames that are late, lost, doubled, out of order or damaged."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        // Sometimes the links of clients are impaired instead of those of members.
        let hosts = if !view.hosts.is_empty() && chance(random, 25) {
            let count = random.below(view.hosts.len()).saturating_add(1);
            some_of(random, &view.hosts, count)
        } else {
            targets::members(random, view, ANY)?
        };
        let mut kind = Packets { hosts, ..Packets::default() };
        let forms = [Form::Late, Form::Lost, Form::Double, Form::Order, Form::Damage];
        let count = random.below(2).saturating_add(1);
        for form in some_of(random, &forms, count) {
            match form {
                Form::Late => {
                    kind.delay_ms = one_of(random, &[5, 20, 50, 100, 250, 500])?;
                    kind.jitter_ms = between(random, 0, kind.delay_ms.div_euclid(2));
                }
                Form::Lost => kind.loss = percent(random, 1, 30),
                Form::Double => kind.duplicate = percent(random, 1, 30),
                Form::Order => kind.reorder = percent(random, 1, 30),
                Form::Damage => kind.corrupt = percent(random, 1, 10),
            }
        }
        Some(self.fault(between(random, 800, 4_000), kind.into()))
    }
}

/// Impairment of frames.
#[derive(Debug, Clone, Copy)]
enum Form {
    Late,
    Lost,
    Double,
    Order,
    Damage,
}

/// Impairments that are collected one by one; shares are in percent.
#[derive(Debug, Default)]
struct Packets {
    hosts: Vec<String>,
    delay_ms: u64,
    jitter_ms: u64,
    loss: u8,
    duplicate: u8,
    reorder: u8,
    corrupt: u8,
}

impl From<Packets> for Kind {
    fn from(packets: Packets) -> Self {
        let Packets { hosts, delay_ms, jitter_ms, loss, duplicate, reorder, corrupt } = packets;
        Self::Packets {
            hosts,
            delay_ms,
            jitter_ms,
            loss_percent: loss,
            duplicate_percent: duplicate,
            reorder_percent: reorder,
            corrupt_percent: corrupt,
        }
    }
}

fn percent(random: &mut Random, low: u64, high: u64) -> u8 {
    u8::try_from(between(random, low, high)).unwrap_or(1)
}
