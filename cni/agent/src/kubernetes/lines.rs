//! Lines of a watch as they arrive, each of bounded length.

use std::time::Duration;

use ipam_api::client::reason;
use ipam_api::limits::KUBERNETES_ANSWER_BYTES_MAX;
use tokio::time::Instant;

use super::ApiError;

/// Bytes that the buffer keeps between two lines.
const BUFFER_BYTES: usize = 64 << 10;

/// Open watch.
#[derive(Debug)]
pub struct Lines {
    response: reqwest::Response,
    buffer: Vec<u8>,
    /// Bytes at the start of the buffer that were returned.
    returned: usize,
    /// Bytes at the start of the buffer without the end of a line.
    searched: usize,
    /// Time at which the watch ends.
    until: Instant,
}

impl Lines {
    pub(super) fn new(response: reqwest::Response, within: Duration) -> Self {
        Self { response, buffer: Vec::new(), returned: 0, searched: 0, until: Instant::now() + within }
    }

    /// Returns the next line without its end; none once the watch has ended.
    ///
    /// # Errors
    /// A lost connection, or a line that is too long.
    pub async fn next(&mut self) -> Result<Option<&[u8]>, ApiError> {
        self.buffer.drain(..self.returned);
        self.searched -= self.returned.min(self.searched);
        self.returned = 0;
        if self.buffer.is_empty() {
            self.buffer.shrink_to(BUFFER_BYTES);
        }
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = unsearched.iter().position(|byte| *byte == b'\n') {
                let end = self.searched + end;
                self.returned = end + 1;
                self.searched = self.returned;
                return Ok(self.buffer.get(..end));
            }
            self.searched = self.buffer.len();
            let chunk = tokio::time::timeout_at(self.until, self.response.chunk()).await;
            match chunk {
                Ok(Ok(Some(chunk))) if self.buffer.len() + chunk.len() <= KUBERNETES_ANSWER_BYTES_MAX => {
                    self.buffer.extend_from_slice(&chunk);
                }
                Ok(Ok(Some(_))) => return Err(ApiError::TooLong(KUBERNETES_ANSWER_BYTES_MAX)),
                Ok(Ok(None)) | Err(_) => return Ok(None),
                Ok(Err(error)) => return Err(ApiError::Unreachable(reason(&error))),
            }
        }
    }
}
