//! Which type a file has, by its first bytes: only the types that media samples come in.

/// How many bytes are enough to tell.
pub(crate) const ENOUGH: usize = 12;

/// Files in the same box as MP4 that are something else: pictures, sound, `QuickTime`.
const OTHERS_IN_THE_BOX: [&[u8]; 9] =
    [b"avif", b"avis", b"heic", b"heix", b"mif1", b"msf1", b"M4A ", b"M4B ", b"qt  "];

/// The type that these first bytes show.
pub(crate) fn sniff(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some("image/png");
    }
    if head.starts_with(b"\xff\xd8\xff") {
        return Some("image/jpeg");
    }
    if head.starts_with(b"%PDF-") {
        return Some("application/pdf");
    }
    let brand = head.get(8..ENOUGH).filter(|_| &head[4..8] == b"ftyp")?;
    (!OTHERS_IN_THE_BOX.contains(&brand)).then_some("video/mp4")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_of_media_samples_are_told_by_their_first_bytes() {
        for (head, expected) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", Some("image/jpeg")),
            (b"%PDF-1.7\n", Some("application/pdf")),
            (b"\0\0\0\x18ftypmp42\0\0\0\0", Some("video/mp4")),
            (b"\0\0\0\x20ftypisom", Some("video/mp4")),
            (b"\0\0\0\x20ftypheic", None),
            (b"\0\0\0\x14ftypqt  ", None),
            (b"\0\0\0\x20ftyp", None),
            (b"<!doctype html>", None),
            (b"\x89PNG", None),
            (b"", None),
        ] {
            assert_eq!(sniff(head), expected, "{head:?}");
        }
    }
}
