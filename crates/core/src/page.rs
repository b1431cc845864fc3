//! Pages of ordered results.

/// How many items a page may hold: 1 … [`crate::limit::PAGE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit(u32);

impl PageLimit {
    /// The largest page (CC-09).
    pub const MAX: Self = Self(crate::limit::PAGE);

    /// Accepts 1 … 50.
    #[must_use]
    pub const fn new(limit: u32) -> Option<Self> {
        if limit >= 1 && limit <= crate::limit::PAGE { Some(Self(limit)) } else { None }
    }

    /// The number of items.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// One page, in the order its port promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items, in order.
    pub items: Vec<T>,
    /// Whether more follow in the asked direction.
    pub has_more: bool,
}

impl<T> Page<T> {
    /// Builds a page from a query that asked for `limit + 1` items.
    #[must_use]
    pub fn from_overfetched(mut items: Vec<T>, limit: PageLimit) -> Self {
        let has_more = items.len() > limit.0 as usize;
        items.truncate(limit.0 as usize);
        Self { items, has_more }
    }

    /// A page without items.
    #[must_use]
    pub const fn empty() -> Self {
        Self { items: Vec::new(), has_more: false }
    }
}
