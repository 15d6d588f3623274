//! What both sides are compared by: how many rows a table has, and a checksum over all of them in
//! the order of their keys.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::cell::Cell;

/// A table as it is on one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// How many rows it has.
    pub rows: u64,
    checksum: [u8; 32],
}

/// The checksum, as people compare it.
impl fmt::Display for Sum {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.checksum[..8].iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

/// A table on both sides.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The table.
    pub table: &'static str,
    /// As the file has it.
    pub source: Sum,
    /// As the database has it.
    pub target: Sum,
}

impl Comparison {
    /// Whether both sides hold the same.
    pub fn is_same(&self) -> bool {
        self.source == self.target
    }
}

/// A sum that is being made.
#[derive(Default)]
pub(super) struct Summing {
    rows: u64,
    digest: Sha256,
    row: Vec<u8>,
}

impl Summing {
    pub(super) fn add(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.row.clear();
        cells.into_iter().for_each(|cell| cell.write(&mut self.row));
        self.digest.update(&self.row);
        self.rows += 1;
    }

    pub(super) fn sum(self) -> Sum {
        Sum { rows: self.rows, checksum: self.digest.finalize().into() }
    }
}
