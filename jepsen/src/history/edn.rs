//! History as EDN, as Jepsen 0.3 reads it: one map a line.
//!
//! Keys and the words of the protocol (`:type`, `:f`, the nemesis, kinds of faults) are keywords in kebab
//! case. Names and addresses stay strings: not each of them would be a valid keyword.

use std::io::{self, Write};

use serde_json::Value as Json;

use super::{Operation, Process};

/// Members whose values are words of the protocol.
const WORDS: [&str; 5] = ["type", "f", "kind", "cut", "moment"];

/// Writes operations, one a line.
///
/// # Errors
/// If the writer fails.
pub fn write_edn(history: &[Operation], writer: &mut impl Write) -> io::Result<()> {
    let mut line = String::new();
    for operation in history {
        line.clear();
        write_operation(operation, &mut line)?;
        line.push('\n');
        writer.write_all(line.as_bytes())?;
    }
    Ok(())
}

fn write_operation(operation: &Operation, line: &mut String) -> io::Result<()> {
    line.push_str(&format!("{{:index {}, :time {}, :process ", operation.index, operation.time_ns));
    match operation.process {
        Process::Client(number) => line.push_str(&number.to_string()),
        Process::Nemesis => line.push_str(":nemesis"),
    }
    line.push_str(&format!(", :type :{}, :f :{}, :value ", operation.kind, operation.f));
    write_value(&serde_json::to_value(&operation.value)?, line);
    line.push('}');
    Ok(())
}

/// Appends a JSON value.
fn write_value(value: &Json, line: &mut String) {
    match value {
        Json::Null => line.push_str("nil"),
        Json::Bool(value) => line.push_str(if *value { "true" } else { "false" }),
        // Integers and decimal fractions have the same form in JSON and EDN.
        Json::Number(number) => line.push_str(&number.to_string()),
        Json::String(text) => write_string(text, line),
        Json::Array(items) => {
            line.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    line.push(' ');
                }
                write_value(item, line);
            }
            line.push(']');
        }
        Json::Object(members) => {
            line.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                if at > 0 {
                    line.push_str(", ");
                }
                write_key(name, line);
                line.push(' ');
                match value {
                    Json::String(word) if WORDS.contains(&name.as_str()) && is_keyword(word) => {
                        line.push(':');
                        line.push_str(word);
                    }
                    value => write_value(value, line),
                }
            }
            line.push('}');
        }
    }
}

/// Appends the key of a map: a keyword if it can be one.
fn write_key(name: &str, line: &mut String) {
    let kebab = name.replace('_', "-");
    if is_keyword(&kebab) {
        line.push(':');
        line.push_str(&kebab);
    } else {
        write_string(name, line);
    }
}

fn is_keyword(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Appends a string with the escapes of Clojure. Other characters stand for themselves.
fn write_string(text: &str, line: &mut String) {
    line.push('"');
    for character in text.chars() {
        match character {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            control if control.is_control() => {
                line.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => line.push(other),
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::checker::fixtures::Script;
    use crate::checker::testing::grant;
    use crate::history::{Function, Type, Value};
    use crate::nemesis::Kind;

    /// Small reader of EDN: keywords become strings that begin with a colon.
    struct Reader<'a>(std::iter::Peekable<std::str::Chars<'a>>);

    impl Reader<'_> {
        fn read(text: &str) -> Json {
            let mut reader = Reader(text.chars().peekable());
            let value = reader.value();
            reader.skip();
            assert_eq!(reader.0.next(), None);
            value
        }

        fn skip(&mut self) {
            while self.0.next_if(|next| next.is_whitespace() || *next == ',').is_some() {}
        }

        fn value(&mut self) -> Json {
            self.skip();
            match self.0.next().unwrap() {
                '{' => {
                    let items = self.until('}');
                    assert!(items.len().is_multiple_of(2));
                    let pairs = items.chunks(2);
                    pairs.map(|pair| (pair[0].as_str().unwrap().to_owned(), pair[1].clone())).collect()
                }
                '[' => Json::Array(self.until(']')),
                '"' => Json::String(self.string()),
                first => {
                    let mut word = first.to_string();
                    while let Some(next) = self.0.next_if(|next| !" ,}]".contains(*next)) {
                        word.push(next);
                    }
                    match word.as_str() {
                        "nil" => Json::Null,
                        "true" => json!(true),
                        "false" => json!(false),
                        keyword if keyword.starts_with(':') => json!(keyword),
                        number => serde_json::from_str(number).unwrap(),
                    }
                }
            }
        }

        fn until(&mut self, end: char) -> Vec<Json> {
            let mut items = Vec::new();
            loop {
                self.skip();
                if self.0.next_if_eq(&end).is_some() {
                    return items;
                }
                items.push(self.value());
            }
        }

        fn string(&mut self) -> String {
            let mut text = String::new();
            loop {
                match self.0.next().unwrap() {
                    '"' => return text,
                    '\\' => match self.0.next().unwrap() {
                        'n' => text.push('\n'),
                        'r' => text.push('\r'),
                        't' => text.push('\t'),
                        'u' => {
                            let digits: String = (0..4).map(|_| self.0.next().unwrap()).collect();
                            text.push(char::from_u32(u32::from_str_radix(&digits, 16).unwrap()).unwrap());
                        }
                        other => text.push(other),
                    },
                    other => text.push(other),
                }
            }
        }
    }

    fn lines(script: &Script) -> Vec<String> {
        let mut text = Vec::new();
        write_edn(&script.history(), &mut text).unwrap();
        String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn operations_have_the_form_of_jepsen() {
        let mut script = Script::default();
        let grants = vec![grant(5, "10.0.0.5")];
        let value = Value { workload: "hot".to_owned(), grants, is_stale: true, ..Value::default() };
        script.end(3, Function::Allocate, Type::Ok, value);
        script.inject("kill", 500, Kind::Kill { members: vec!["n1".to_owned()] }, None, &["9"]);
        assert_eq!(
            lines(&script)[..2],
            [
                "{:index 0, :time 0, :process 3, :type :ok, :f :allocate, :value {:grants \
                 [{:address \"10.0.0.5\", :id 5, :network \"default\"}], :is-stale true, :workload \"hot\"}}",
                "{:index 1, :time 1000000, :process :nemesis, :type :invoke, :f :fault, :value \
                 {:fault {:kind :kill, :lasts-ms 500, :members [\"n1\"], :nemesis \"kill\"}}}",
            ]
        );
    }

    #[test]
    fn values_survive_a_round_trip() {
        let detail = json!({
            "text": "quote \" backslash \\ lines\n\r\t bell \u{7} ä 𝄞", "null": null,
            "list": [1, -2, 2.5, []],
            "10.0.0.1": { "not a keyword": false }, "snake_case": "10/24",
        });
        let mut script = Script::default();
        script.end(3, Function::Read, Type::Fail, Value { detail: detail.clone(), ..Value::default() });
        let read = Reader::read(&lines(&script)[0]);
        assert_eq!(read[":f"], ":read");
        let read = &read[":value"][":detail"];
        assert_eq!(read[":text"], detail["text"]);
        assert_eq!(read[":list"], detail["list"]);
        assert_eq!(read[":null"], Json::Null);
        assert_eq!(read["10.0.0.1"]["not a keyword"], false);
        assert_eq!(read[":snake-case"], "10/24");
    }
}
