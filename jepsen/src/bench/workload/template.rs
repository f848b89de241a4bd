//! Prebuilt bytes of a request, in which only a number changes from call to call.

/// Place of the number in the text: as many characters as the number has digits.
pub(super) const PLACE: &str = "################";
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Request with a number.
#[derive(Debug, Clone)]
pub(super) struct Template {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

impl Template {
    /// Template from bytes that contain [`PLACE`].
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let places = bytes.windows(PLACE.len()).enumerate();
        let places = places.filter(|(_, window)| *window == PLACE.as_bytes()).map(|(at, _)| at).collect();
        Self { bytes, places }
    }

    /// The bytes with a number in 16 hexadecimal digits.
    pub(super) fn with(&mut self, number: u64) -> &[u8] {
        for at in &self.places {
            let shifts = (0..u64::BITS).step_by(4).rev();
            for (byte, shift) in self.bytes.iter_mut().skip(*at).zip(shifts) {
                let digit = usize::try_from((number >> shift) & 15).unwrap_or_default();
                *byte = DIGITS.get(digit).copied().unwrap_or_default();
            }
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_the_number_in_hexadecimal_digits() {
        let mut template = Template::new(format!("<{PLACE}|{PLACE}>").into_bytes());
        for number in [0, 1, 0xdead_beef, u64::MAX] {
            assert_eq!(template.with(number), format!("<{number:016x}|{number:016x}>").as_bytes());
        }
    }
}
