//! Addresses, ranges and sets of ranges.
//!
//! A range is stored as its two ends and is never enumerated: a /8 and an IPv6 /32 cost as much as a single
//! address.

pub mod offset;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::name::is_not;
use crate::problem::{Code, Problem};

/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4, `4` in JSON.
    V4,
    /// IPv6, `6` in JSON.
    V6,
}

impl Family {
    /// Both families, in the order in which results list them.
    pub const BOTH: [Family; 2] = [Family::V4, Family::V6];

    /// Returns the family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// Bits of an address of this family.
    #[must_use]
    pub fn bits(self) -> u8 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }

    /// The highest address, as a number.
    #[must_use]
    pub fn last(self) -> u128 {
        match self {
            Family::V4 => u32::MAX.into(),
            Family::V6 => u128::MAX,
        }
    }

    /// Returns the address with this number. For IPv4, only the low 32 bits are used.
    #[must_use]
    pub fn address(self, number: u128) -> IpAddr {
        match self {
            Family::V4 => {
                IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(number & 0xffff_ffff).unwrap_or_default()))
            }
            Family::V6 => IpAddr::V6(Ipv6Addr::from_bits(number)),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        })
    }
}

impl Serialize for Family {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(match self {
            Family::V4 => 4,
            Family::V6 => 6,
        })
    }
}

impl<'de> Deserialize<'de> for Family {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u8::deserialize(deserializer)? {
            4 => Ok(Family::V4),
            6 => Ok(Family::V6),
            other => Err(serde::de::Error::custom(format!("{other} is not an address family; it is 4 or 6"))),
        }
    }
}

/// An address as a number; IPv4 in the low 32 bits.
#[must_use]
pub fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// Reads an address in any of its forms.
///
/// # Errors
/// `invalid-field`.
pub fn parse_address(text: &str) -> Result<IpAddr, Problem> {
    text.parse::<IpAddr>().map(|address| address.to_canonical()).map_err(|_| is_not(text, "an IP address"))
}

/// Canonical form of a MAC address: lower case, with colons. Other text is returned for the caller to check.
#[must_use]
pub fn canonical_mac(text: &str) -> String {
    text.replace('-', ":").to_ascii_lowercase()
}

/// Parses a CIDR without host bits.
///
/// # Errors
/// `invalid-field`, or `cidr-has-host-bits` with the corrected CIDR.
pub fn parse_cidr(text: &str) -> Result<IpNet, Problem> {
    check_cidr(text.parse().map_err(|_| is_not(text, "a CIDR such as 10.0.0.0/24"))?)
}

/// Refuses a CIDR with host bits.
///
/// # Errors
/// `cidr-has-host-bits` with the corrected CIDR.
pub fn check_cidr(net: IpNet) -> Result<IpNet, Problem> {
    if net.addr() == net.network() {
        return Ok(net);
    }
    Err(Problem::new(Code::CidrHasHostBits, format!("{net} has host bits; did you mean {}?", net.trunc())))
}

/// A non-empty range of addresses of one family, both ends included. JSON and the command line accept a
/// single address, `first-last`, or a CIDR; the output is a single address or `first-last`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressRange {
    family: Family,
    first: u128,
    last: u128,
}

impl AddressRange {
    /// Creates a range from its first and last address.
    ///
    /// # Errors
    /// `family-mismatch`, or `range-reversed`.
    pub fn new(first: IpAddr, last: IpAddr) -> Result<Self, Problem> {
        if Family::of(first) != Family::of(last) {
            return Err(Problem::new(
                Code::FamilyMismatch,
                format!("{first}-{last} has an end of either family"),
            ));
        }
        if number(first) > number(last) {
            return Err(Problem::new(
                Code::RangeReversed,
                format!("{first}-{last} is reversed; did you mean {last}-{first}?"),
            ));
        }
        Ok(Self { family: Family::of(first), first: number(first), last: number(last) })
    }

    /// Range of a single address.
    #[must_use]
    pub fn single(address: IpAddr) -> Self {
        Self { family: Family::of(address), first: number(address), last: number(address) }
    }

    /// All addresses of a CIDR.
    #[must_use]
    pub fn of_cidr(net: IpNet) -> Self {
        Self { family: Family::of(net.addr()), first: number(net.network()), last: number(net.broadcast()) }
    }

    /// Address family of both ends.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// First address as a number.
    #[must_use]
    pub fn first(&self) -> u128 {
        self.first
    }

    /// Last address as a number, included.
    #[must_use]
    pub fn last(&self) -> u128 {
        self.last
    }

    /// Lowest address of the range.
    #[must_use]
    pub fn first_address(&self) -> IpAddr {
        self.family.address(self.first)
    }

    /// Last address of the range, included.
    #[must_use]
    pub fn last_address(&self) -> IpAddr {
        self.family.address(self.last)
    }

    /// True if every address of `other` is in this range.
    #[must_use]
    pub fn contains(&self, other: &AddressRange) -> bool {
        self.family == other.family && self.first <= other.first && other.last <= self.last
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first_address())
        } else {
            write!(f, "{}-{}", self.first_address(), self.last_address())
        }
    }
}

impl fmt::Debug for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for AddressRange {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        if text.contains('/') {
            return parse_cidr(text).map(Self::of_cidr);
        }
        match text.split_once('-') {
            Some((first, last)) => Self::new(parse_address(first)?, parse_address(last)?),
            None => parse_address(text).map(Self::single),
        }
    }
}

impl Serialize for AddressRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            (self.first_address(), self.last_address()).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for AddressRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse()
        } else {
            let (first, last) = <(IpAddr, IpAddr)>::deserialize(deserializer)?;
            Self::new(first, last)
        };
        // The error text begins with the problem's code, which `strict` extracts.
        read.map_err(|problem: Problem| serde::de::Error::custom(problem))
    }
}

/// A set of addresses of one family as sorted, disjoint, non-adjacent ranges.
#[derive(Clone, PartialEq, Eq)]
pub struct RangeSet {
    family: Family,
    /// Ends of the ranges, both included.
    ranges: Vec<(u128, u128)>,
}

impl RangeSet {
    /// The empty set.
    #[must_use]
    pub fn empty(family: Family) -> Self {
        Self { family, ranges: Vec::new() }
    }

    /// The union of the ranges of this family; ranges of the other family are left out.
    #[must_use]
    pub fn new<'a>(family: Family, ranges: impl IntoIterator<Item = &'a AddressRange>) -> Self {
        let mut sorted: Vec<(u128, u128)> =
            ranges.into_iter().filter(|r| r.family == family).map(|r| (r.first, r.last)).collect();
        sorted.sort_unstable();
        let mut merged: Vec<(u128, u128)> = Vec::with_capacity(sorted.len());
        for (first, last) in sorted {
            match merged.last_mut() {
                Some(previous) if first <= previous.1.saturating_add(1) => previous.1 = previous.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        Self { family, ranges: merged }
    }

    /// Address family of the set.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// True if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Ranges of the set, in ascending order.
    pub fn ranges(&self) -> impl Iterator<Item = AddressRange> + '_ {
        self.ranges.iter().map(|&(first, last)| AddressRange { family: self.family, first, last })
    }

    /// Number of addresses; saturates for all of IPv6.
    #[must_use]
    pub fn size(&self) -> u128 {
        self.ranges
            .iter()
            .fold(0, |sum: u128, (first, last)| sum.saturating_add((last - first).saturating_add(1)))
    }

    /// Returns the `n`th lowest address, counted from 0. Takes time proportional to the number of ranges.
    #[must_use]
    pub fn nth(&self, n: u128) -> Option<u128> {
        let mut left = n;
        for (first, last) in &self.ranges {
            if left <= last - first {
                return Some(first + left);
            }
            left -= (last - first).checked_add(1)?;
        }
        None
    }

    /// True if the address with this number is in the set.
    #[must_use]
    pub fn contains(&self, number: u128) -> bool {
        let after = self.ranges.partition_point(|&(first, _)| first <= number);
        after.checked_sub(1).and_then(|i| self.ranges.get(i)).is_some_and(|&(_, last)| number <= last)
    }

    /// Returns whether the address with this number is in the set, and the last number for which that holds
    /// without interruption.
    #[must_use]
    pub fn stretch(&self, number: u128) -> (bool, u128) {
        let after = self.ranges.partition_point(|&(_, last)| last < number);
        let next = self.ranges.get(after).copied();
        next.map_or((false, u128::MAX), |(a, z)| if a <= number { (true, z) } else { (false, a - 1) })
    }

    /// Parts of the set between two numbers, both included, in ascending order.
    pub fn within(&self, first: u128, last: u128) -> impl Iterator<Item = (u128, u128)> + '_ {
        let from = self.ranges.partition_point(|&(_, end)| end < first);
        let ranges = self.ranges.iter().skip(from).take_while(move |&&(start, _)| start <= last);
        ranges.map(move |&(start, end)| (start.max(first), end.min(last)))
    }

    /// Addresses in this set, in `other`, or in both.
    #[must_use]
    pub fn union(&self, other: &RangeSet) -> RangeSet {
        let all: Vec<AddressRange> = self.ranges().chain(other.ranges()).collect();
        RangeSet::new(self.family, &all)
    }

    /// Addresses in both sets.
    #[must_use]
    pub fn intersection(&self, other: &RangeSet) -> RangeSet {
        let mut ranges = Vec::new();
        let (mut left, mut right) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let (first, last) = (a.0.max(b.0), a.1.min(b.1));
            if first <= last {
                ranges.push((first, last));
            }
            if a.1 < b.1 {
                left.next();
            } else {
                right.next();
            }
        }
        RangeSet { family: self.family, ranges }
    }

    /// Addresses in this set and not in `other`.
    #[must_use]
    pub fn minus(&self, other: &RangeSet) -> RangeSet {
        let mut ranges = Vec::new();
        let mut holes = other.ranges.iter().peekable();
        for &(first, last) in &self.ranges {
            let mut from = Some(first);
            while let (Some(start), Some(hole)) = (from, holes.peek()) {
                if hole.1 < start {
                    holes.next();
                } else if hole.0 > last {
                    break;
                } else {
                    if hole.0 > start {
                        ranges.push((start, hole.0 - 1));
                    }
                    from = hole.1.checked_add(1).filter(|next| *next <= last);
                    if hole.1 <= last {
                        holes.next();
                    } else {
                        break;
                    }
                }
            }
            if let Some(start) = from {
                ranges.push((start, last));
            }
        }
        RangeSet { family: self.family, ranges }
    }
}

impl fmt::Debug for RangeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ranges()).finish()
    }
}

#[cfg(test)]
mod tests;
