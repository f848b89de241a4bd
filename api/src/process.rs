//! The kernel's record of a process, `/proc/PID/stat` (proc(5)).

/// Fields between the program's name (field 2) and the start time (field 22).
const FIELDS_BETWEEN: usize = 19;

/// Start time in a record, in ticks of 10 ms since boot.
#[must_use]
pub fn start_ticks(stat: &[u8]) -> Option<u64> {
    fields(stat)?.nth(FIELDS_BETWEEN)?.parse().ok()
}

/// Parent in a record: the second field after the program's name.
#[must_use]
pub fn parent(stat: &[u8]) -> Option<u32> {
    fields(stat)?.nth(1)?.parse().ok()
}

/// Fields of a record from the third one, the state.
///
/// The program's name is in parentheses and may contain any bytes, also parentheses and spaces. So fields are
/// counted from the last closing parenthesis.
fn fields(stat: &[u8]) -> Option<std::str::SplitAsciiWhitespace<'_>> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(name_end..)?.strip_prefix(b")")?).ok()?;
    Some(fields.split_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &str = "R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21 22";

    #[test]
    fn the_start_time_is_the_22nd_field_whatever_the_program_is_called() {
        let names: [&[u8]; 6] = [b"ipam-cni", b"", b"a b c", b") R 1 2 3 (", b"((x))", b"\xff\n) "];
        for name in names {
            let stat = [b"77 (".as_slice(), name, b") ", FIELDS.as_bytes(), b"\n"].concat();
            assert_eq!(start_ticks(&stat), Some(4242), "{}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn a_record_that_has_no_start_time_gives_none() {
        let short = format!("77 (x) {}", FIELDS.split_once(" 4242").unwrap().0);
        for stat in ["", "77", "77 (x", "77 (x)", &short, &format!("77 (x) {}", FIELDS.replace("4242", "-1"))]
        {
            assert_eq!(start_ticks(stat.as_bytes()), None, "{stat}");
        }
    }

    #[test]
    fn the_parent_follows_the_state() {
        assert_eq!(parent(b"77 (a) b) S 4242 1 1 0"), Some(4242));
        assert_eq!(parent(b"77 (a"), None);
    }
}
