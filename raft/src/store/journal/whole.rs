//! Sealed segments as whole files, for those who take them elsewhere.

use std::fs::File;
use std::io::{self, Read, Seek as _};

use super::files::JournalFiles;
use super::sealed::Sealed;
use crate::store::directory::frame;
use ipam_machine::State;

/// A sealed segment, open: it stays readable even when it is given up meanwhile.
pub(crate) struct Whole {
    pub(crate) number: u64,
    sealed: Sealed,
}

impl Whole {
    /// Reads every byte and checks it.
    pub(crate) fn verify(&self) -> io::Result<()> {
        self.sealed.verify().map_err(|error| {
            io::Error::new(error.kind(), format!("segment {} of the journal: {error}", self.number))
        })
    }

    pub(crate) fn length(&self) -> io::Result<u64> {
        Ok(self.file().metadata()?.len())
    }

    /// All of its bytes.
    pub(crate) fn bytes(&self) -> io::Result<impl Read> {
        let mut file = self.file();
        file.rewind()?;
        Ok(file)
    }

    fn file(&self) -> &File {
        self.sealed.file()
    }
}

impl JournalFiles {
    /// Opens all sealed segments of a state.
    pub(crate) fn open_all(&self, state: &State) -> io::Result<Vec<Whole>> {
        let open = |(number, segment)| {
            if !self.has(number) {
                return Err(frame::invalid(format!(
                    "segment {number} of the journal isn't here yet; another member has it"
                )));
            }
            Ok(Whole { number, sealed: self.sealed(number, segment)? })
        };
        state.segments.iter().map(open).collect()
    }
}
