//! Classes of bytes. One pass over a string finds those that it contains, and checks that need
//! another one are skipped: most strings contain none.

/// Part of a character that is not ASCII.
pub(crate) const NON_ASCII: u8 = 1;

/// `{` or `}`.
pub(crate) const BRACE: u8 = 2;

/// `/`.
pub(crate) const SLASH: u8 = 4;

/// Line feed or carriage return.
pub(crate) const LINE_BREAK: u8 = 8;

/// A control character, or the first byte of one or of a line separator: 0xC2 starts U+0080 to
/// U+00BF, and 0xE2 starts the separators.
pub(crate) const CONTROL: u8 = 16;

/// A byte that is escaped in JSON.
pub(crate) const ESCAPED: u8 = 32;

/// An ASCII character other than a letter, a digit, a space and plain punctuation.
pub(crate) const SYMBOL: u8 = 64;

/// The classes of bytes that a string contains.
#[derive(Clone, Copy)]
pub(crate) struct ByteClasses(u8);

impl ByteClasses {
    pub(crate) fn of(text: &str) -> Self {
        let add = |found: u8, byte: &u8| found | CLASSES[usize::from(*byte)];
        // The compiler unrolls a loop over an array.
        let (chunks, rest) = text.as_bytes().as_chunks::<8>();
        let found = chunks.iter().fold(0, |found, chunk| chunk.iter().fold(found, add));
        Self(rest.iter().fold(found, add))
    }

    /// Whether the string contains a byte of one of these classes.
    pub(crate) fn has(self, classes: u8) -> bool {
        self.0 & classes != 0
    }
}

/// The classes of each byte.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < classes.len() {
        classes[byte] = match byte {
            0x0a | 0x0d => LINE_BREAK | CONTROL | ESCAPED | SYMBOL,
            0..0x20 => CONTROL | ESCAPED | SYMBOL,
            0x7f => CONTROL | SYMBOL,
            0xc2 | 0xe2 => NON_ASCII | CONTROL,
            0x80.. => NON_ASCII,
            _ => SYMBOL,
        };
        byte += 1;
    }
    let plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,!?'-:;&%()";
    let mut index = 0;
    while index < plain.len() {
        classes[plain[index] as usize] = 0;
        index += 1;
    }
    classes[b'{' as usize] |= BRACE;
    classes[b'}' as usize] |= BRACE;
    classes[b'/' as usize] |= SLASH;
    classes[b'"' as usize] |= ESCAPED;
    classes[b'\\' as usize] |= ESCAPED;
    classes
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_has_the_classes_of_all_its_bytes() {
        for (text, classes) in [
            ("", 0),
            ("Hello, world: plain ASCII!", 0),
            ("é", NON_ASCII),
            ("\u{a0}", NON_ASCII | CONTROL),
            ("a long text, then {", BRACE | SYMBOL),
            ("} and / at the ends", BRACE | SLASH | SYMBOL),
            ("\r", LINE_BREAK | CONTROL | ESCAPED | SYMBOL),
            ("\t", CONTROL | ESCAPED | SYMBOL),
            ("\u{7f}", CONTROL | SYMBOL),
            ("\u{2028}", NON_ASCII | CONTROL),
            ("\"", ESCAPED | SYMBOL),
            ("12345678\\", ESCAPED | SYMBOL),
            ("*", SYMBOL),
        ] {
            assert_eq!(ByteClasses::of(text).0, classes, "{text:?}");
        }
    }
}
