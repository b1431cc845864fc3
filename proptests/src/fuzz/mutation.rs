//! Inputs: kept files with some mutations, or nothing but chance.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::{Input, Shape};

/// Longest input that is made by repeating and splicing.
const MAX_BYTES: usize = 16_384;

/// Bytes at which readers go wrong.
const EDGES: [u8; 14] =
    [0x00, 0x01, 0x7f, 0x80, 0xff, 0xfe, b'"', b'\\', b'\n', b'{', b'}', b'=', b'-', b'9'];

#[derive(Debug, Clone)]
enum Mutation {
    Set(Index, u8),
    Edge(Index, Index),
    Insert(Index, Vec<u8>),
    Word(Index, Index),
    Remove(Index, usize),
    Repeat(Index, usize, usize),
    Cut(Index),
    Splice(Index, Index, Index),
}

impl Mutation {
    fn apply(&self, bytes: &mut Vec<u8>, shape: &Shape, seeds: &[Vec<u8>]) {
        let place = |index: &Index, bytes: &[u8]| index.index(bytes.len() + 1);
        match self {
            Self::Set(at, value) => set(bytes, at, *value),
            Self::Edge(at, edge) => set(bytes, at, *edge.get(&EDGES)),
            Self::Insert(at, what) => {
                let at = place(at, bytes);
                bytes.splice(at..at, what.iter().copied());
            }
            Self::Word(at, word) => {
                let at = place(at, bytes);
                bytes.splice(at..at, word.get(shape.words).iter().copied());
            }
            Self::Remove(at, len) => {
                let at = place(at, bytes);
                bytes.drain(at..bytes.len().min(at + len));
            }
            Self::Repeat(at, len, times) => {
                let at = place(at, bytes);
                let part = bytes[at..bytes.len().min(at + len)].repeat(*times);
                bytes.splice(at..at, part);
            }
            Self::Cut(at) => bytes.truncate(place(at, bytes)),
            Self::Splice(at, seed, from) => {
                let other = seed.get(seeds);
                bytes.truncate(place(at, bytes));
                bytes.extend_from_slice(&other[place(from, other)..]);
            }
        }
        bytes.truncate(MAX_BYTES);
    }
}

fn set(bytes: &mut [u8], at: &Index, value: u8) {
    if !bytes.is_empty() {
        let at = at.index(bytes.len());
        bytes[at] = value;
    }
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, value)| Mutation::Set(at, value)),
        (at(), at()).prop_map(|(at, edge)| Mutation::Edge(at, edge)),
        (at(), vec(any::<u8>(), 1..8)).prop_map(|(at, what)| Mutation::Insert(at, what)),
        (at(), at()).prop_map(|(at, word)| Mutation::Word(at, word)),
        (at(), 1..32_usize).prop_map(|(at, len)| Mutation::Remove(at, len)),
        (at(), 1..64_usize, 1..16_usize)
            .prop_map(|(at, len, times)| Mutation::Repeat(at, len, times)),
        at().prop_map(Mutation::Cut),
        (at(), at(), at()).prop_map(|(at, seed, from)| Mutation::Splice(at, seed, from)),
    ]
}

/// Nine of ten are kept files with up to five mutations, half of them mended.
pub(super) fn input(shape: &Shape, seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Input> + use<> {
    let shape = *shape;
    let mutated = (any::<Index>(), vec(mutation(), 0..6), any::<bool>());
    let mutated = mutated.prop_map(move |(seed, mutations, is_mended)| {
        let mut bytes = seed.get(&seeds).clone();
        for mutation in mutations {
            mutation.apply(&mut bytes, &shape, &seeds);
        }
        Input(if is_mended { (shape.mended)(bytes) } else { bytes })
    });
    prop_oneof![
        1 => vec(any::<u8>(), 0..256).prop_map(Input),
        9 => mutated,
    ]
}
