//! Words of other systems, and other orders of the same words.
//!
//! Whoever comes from kubectl types `get pools`, whoever comes from NetBox types `vrf list`. Both get what
//! they mean, and the second one learns our word on the way.

use std::ffi::OsString;

use clap::CommandFactory as _;

use crate::arguments::Arguments;

/// Our nouns.
const NOUNS: [&str; 6] = ["network", "subnet", "pool", "reservation", "endpoint", "allocation"];

/// Verbs that others put before the noun, and what we call them.
const VERBS: [(&str, &str); 11] = [
    ("get", "get"),
    ("list", "list"),
    ("ls", "list"),
    ("show", "show"),
    ("describe", "show"),
    ("create", "create"),
    ("add", "create"),
    ("set", "set"),
    ("edit", "set"),
    ("delete", "delete"),
    ("rm", "delete"),
];

/// What others call our nouns: their word, how it reads in a sentence, our word.
const FOREIGN: [(&str, &str, &str); 12] = [
    ("vrf", "a VRF", "network"),
    ("view", "a network view", "network"),
    ("scope", "a scope", "network"),
    ("spidersubnet", "a SpiderSubnet", "subnet"),
    ("range", "an IP range", "pool"),
    ("ippool", "an IPPool", "pool"),
    ("spiderippool", "a SpiderIPPool", "pool"),
    ("reservedip", "a ReservedIP", "reservation"),
    ("spiderreservedip", "a SpiderReservedIP", "reservation"),
    ("spiderendpoint", "a SpiderEndpoint", "endpoint"),
    ("workloadendpoint", "a WorkloadEndpoint", "endpoint"),
    ("lease", "a lease", "allocation"),
];

/// Puts a command line into our words and our order; with a hint where a word was foreign.
pub(crate) fn translate(mut words: Vec<OsString>) -> (Vec<OsString>, Option<String>) {
    let places = places(&words);
    let word = |place: usize| -> String {
        let word = places.get(place).and_then(|index| words.get(*index)).and_then(|word| word.to_str());
        word.unwrap_or_default().to_owned()
    };
    let (mut first, mut second, third) = (word(0), word(1), word(2));
    let mut hint = None;
    if let Some((_, ours)) = VERBS.iter().find(|(theirs, _)| *theirs == first)
        && noun(&second).is_some()
    {
        (first, second) = (second, (*ours).to_owned());
    }
    if let Some((ours, Some(sentence))) = noun(&first) {
        let verb = if second.is_empty() { "list" } else { &second };
        hint = Some(format!("{sentence} is called {ours} here: ipamctl {ours} {verb}"));
        first = ours.to_owned();
    }
    if second == "get" && noun(&first).is_some() {
        second = if third.is_empty() { "list" } else { "show" }.to_owned();
    }
    // `address show A` and `ip A` ask the one question that there is about an address.
    if matches!(first.as_str(), "address" | "addresses" | "ip") && !second.is_empty() {
        let hot = if second == "release" { "release" } else { "who-has" };
        if matches!(second.as_str(), "show" | "describe" | "get" | "release") {
            remove(&mut words, places.get(1));
            replace(&mut words, places.first(), hot);
        } else {
            replace(&mut words, places.first(), hot);
        }
        return (words, hint);
    }
    replace(&mut words, places.first(), &first);
    replace(&mut words, places.get(1), &second);
    (words, hint)
}

/// Our noun for a word, with the sentence about it if the word is foreign.
fn noun(word: &str) -> Option<(&'static str, Option<&'static str>)> {
    let word = word.to_ascii_lowercase();
    let singular = word.strip_suffix('s').unwrap_or(&word);
    if let Some(ours) = NOUNS.iter().find(|noun| **noun == singular) {
        return Some((ours, None));
    }
    let known = FOREIGN.iter().find(|(theirs, _, _)| *theirs == singular);
    known.map(|(_, sentence, ours)| (*ours, Some(*sentence)))
}

/// Where the words stand that are neither flags nor values of global flags; the program's name isn't one.
fn places(words: &[OsString]) -> Vec<usize> {
    let with_value = flags_with_value();
    let mut places = Vec::new();
    let mut value = false;
    for (index, word) in words.iter().enumerate().skip(1) {
        let text = word.to_string_lossy();
        if value {
            value = false;
        } else if text == "--" {
            break;
        } else if text.starts_with('-') {
            value = with_value.iter().any(|flag| *flag == text);
        } else {
            places.push(index);
        }
    }
    places
}

/// Global flags whose value is the next word.
fn flags_with_value() -> Vec<String> {
    let grammar = Arguments::command();
    let taking =
        grammar.get_arguments().filter(|flag| flag.is_global_set() && flag.get_action().takes_values());
    taking
        .flat_map(|flag| {
            let short = flag.get_short().map(|short| format!("-{short}"));
            flag.get_long().map(|long| format!("--{long}")).into_iter().chain(short)
        })
        .collect()
}

fn replace(words: &mut [OsString], place: Option<&usize>, word: &str) {
    if let Some(slot) = place.and_then(|index| words.get_mut(*index))
        && slot.to_str().is_some()
    {
        *slot = OsString::from(word);
    }
}

fn remove(words: &mut Vec<OsString>, place: Option<&usize>) {
    if let Some(index) = place.filter(|index| **index < words.len()) {
        words.remove(*index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> (String, Option<String>) {
        let words = line.split_whitespace().map(OsString::from).collect();
        let (words, hint) = translate(words);
        let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
        (words.join(" "), hint)
    }

    #[test]
    fn the_order_of_kubectl_is_understood() {
        for (theirs, ours) in [
            ("ipamctl get pools", "ipamctl pools list"),
            ("ipamctl get pool web", "ipamctl pool show web"),
            ("ipamctl -o json get pools", "ipamctl -o json pools list"),
            ("ipamctl describe pool web", "ipamctl pool show web"),
            ("ipamctl pool get", "ipamctl pool list"),
            ("ipamctl pool get web -o json", "ipamctl pool show web -o json"),
            ("ipamctl rm pool web", "ipamctl pool delete web"),
            ("ipamctl pool show get", "ipamctl pool show get"),
            ("ipamctl ip 10.0.0.1", "ipamctl who-has 10.0.0.1"),
            ("ipamctl address show 10.0.0.1", "ipamctl who-has 10.0.0.1"),
            ("ipamctl address release 10.0.0.1", "ipamctl release 10.0.0.1"),
            ("ipamctl status", "ipamctl status"),
            ("ipamctl", "ipamctl"),
        ] {
            assert_eq!(translated(theirs), (ours.to_owned(), None), "{theirs}");
        }
    }

    #[test]
    fn foreign_words_are_translated_and_told() {
        let (words, hint) = translated("ipamctl vrf list");
        assert_eq!(words, "ipamctl network list");
        assert_eq!(hint.unwrap(), "a VRF is called network here: ipamctl network list");
        let (words, hint) = translated("ipamctl get leases");
        assert_eq!(words, "ipamctl allocation list");
        assert!(hint.unwrap().starts_with("a lease is called allocation here"));
    }
}
