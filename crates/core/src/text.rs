//! Rules for text from outside (M1, T4): counted in Unicode scalar values, no control characters.

use crate::limit::MAX_SHORT_CHARS;

/// Why a text is refused. Nothing is ever truncated (A4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Nothing is left after trimming.
    #[error("content is empty")]
    Empty,
    /// More scalar values than allowed.
    #[error("content is longer than {max} characters")]
    TooLong {
        /// The limit in scalar values.
        max: usize,
    },
    /// A control character other than the allowed ones.
    #[error("content holds a control character")]
    Control,
}

/// Checks the text of a message: 1 … `max` scalar values, newline and tab allowed (M1).
///
/// # Errors
/// The first rule that `text` breaks.
pub fn check_message_text(text: &str, max: usize) -> Result<(), TextError> {
    if text.trim().is_empty() {
        return Err(TextError::Empty);
    }
    check_free_text(text, max)
}

/// Checks optional free text such as a rating comment or a note: may be empty, newline and tab allowed.
///
/// # Errors
/// The first rule that `text` breaks.
pub fn check_free_text(text: &str, max: usize) -> Result<(), TextError> {
    if longer_than(text, max) {
        return Err(TextError::TooLong { max });
    }
    let forbidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if text.chars().any(forbidden) { Err(TextError::Control) } else { Ok(()) }
}

/// Checks any other stored string: at most 128 scalar values, no control character at all (T4).
///
/// # Errors
/// The first rule that `text` breaks.
pub fn check_short_text(text: &str) -> Result<(), TextError> {
    if longer_than(text, MAX_SHORT_CHARS) {
        return Err(TextError::TooLong { max: MAX_SHORT_CHARS });
    }
    if text.chars().any(char::is_control) { Err(TextError::Control) } else { Ok(()) }
}

/// Whether `text` has at most `max` scalar values and no control character.
#[must_use]
pub fn is_clean(text: &str, max: usize) -> bool {
    !longer_than(text, max) && !text.chars().any(char::is_control)
}

/// Counts no further than it must, so that a huge text costs nothing.
fn longer_than(text: &str, max: usize) -> bool {
    text.len() > max && text.chars().nth(max).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_counts_scalar_values_not_bytes() {
        assert_eq!(check_message_text(&"客".repeat(500), 500), Ok(()));
        assert_eq!(
            check_message_text(&"😀".repeat(501), 500),
            Err(TextError::TooLong { max: 500 })
        );
    }

    #[test]
    fn blank_and_control_are_refused() {
        assert_eq!(check_message_text(" \n\u{3000}", 500), Err(TextError::Empty));
        assert_eq!(check_message_text("a\u{0}b", 500), Err(TextError::Control));
        assert_eq!(check_message_text("a\n\tb", 500), Ok(()));
        assert_eq!(check_short_text("a\nb"), Err(TextError::Control));
    }
}
