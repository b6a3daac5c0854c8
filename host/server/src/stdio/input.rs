//! Reading lines, bounded: a line that is too long is skipped as it comes, and those behind it are read.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// A line that is not blank.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// All of it, without its end.
    Whole(Vec<u8>),
    /// It had more than this many bytes.
    TooLong { bytes_max: usize },
}

/// Lines of an input.
#[derive(Debug)]
pub(crate) struct Input<R> {
    reader: BufReader<R>,
    bytes_max: usize,
    line: Vec<u8>,
    too_long: bool,
}

impl<R: AsyncRead + Unpin> Input<R> {
    pub(crate) fn new(reader: R, bytes_max: usize) -> Self {
        Self {
            reader: BufReader::new(reader),
            bytes_max,
            line: Vec::new(),
            too_long: false,
        }
    }

    /// The next line that is not blank; `None` at the end. Cancelling it loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        loop {
            // An input that cannot be read has ended.
            let available = self.reader.fill_buf().await.ok()?;
            let is_end = available.is_empty();
            let newline = available.iter().position(|byte| *byte == b'\n');
            let piece = &available[..newline.unwrap_or(available.len())];
            self.too_long |= self.line.len() + piece.len() > self.bytes_max;
            if self.too_long {
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(piece);
            }
            let used = newline.map_or(available.len(), |at| at + 1);
            self.reader.consume(used);
            if newline.is_some() || is_end {
                if let Some(line) = self.take() {
                    return Some(line);
                }
                if is_end {
                    return None;
                }
            }
        }
    }

    fn take(&mut self) -> Option<Line> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.too_long) {
            let bytes_max = self.bytes_max;
            return Some(Line::TooLong { bytes_max });
        }
        (!line.trim_ascii().is_empty()).then_some(Line::Whole(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_read_and_long_ones_skipped() {
        let text = "one\n\n  \r\ntwo\r\n12345678\nthree";
        let mut input = Input::new(text.as_bytes(), 7);
        let whole = |text: &str| Some(Line::Whole(text.as_bytes().to_vec()));
        assert_eq!(input.next().await, whole("one"));
        assert_eq!(input.next().await, whole("two\r"));
        assert_eq!(input.next().await, Some(Line::TooLong { bytes_max: 7 }));
        assert_eq!(input.next().await, whole("three"));
        assert_eq!(input.next().await, None);
        assert_eq!(input.next().await, None);
    }
}
