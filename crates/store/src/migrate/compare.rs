//! Compares tables by their number of rows and a checksum over all rows in key order.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::value::encode;
use crate::engine::Value;

/// The row count and checksum of a table on one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableChecksum {
    /// Number of rows.
    pub rows: u64,
    checksum: [u8; 32],
}

/// The first 8 bytes of the checksum, in hexadecimal.
impl fmt::Display for TableChecksum {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.checksum[..8].iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

/// The checksums of a table on both sides.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The table.
    pub table: String,
    /// In the SQLite file.
    pub source: TableChecksum,
    /// In the PostgreSQL database.
    pub target: TableChecksum,
}

impl Comparison {
    /// Whether both sides have the same rows.
    pub fn is_match(&self) -> bool {
        self.source == self.target
    }
}

/// Computes a [`TableChecksum`].
#[derive(Default)]
pub(super) struct ChecksumBuilder {
    rows: u64,
    digest: Sha256,
    row: Vec<u8>,
}

impl ChecksumBuilder {
    pub(super) fn add(&mut self, row: &[Value<'_>]) {
        self.row.clear();
        for value in row {
            encode(value, &mut self.row);
        }
        self.digest.update(&self.row);
        self.rows += 1;
    }

    pub(super) fn finish(self) -> TableChecksum {
        TableChecksum { rows: self.rows, checksum: self.digest.finalize().into() }
    }
}
