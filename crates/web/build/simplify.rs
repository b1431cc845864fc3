//! Shorter ways to write the same.

use std::collections::{BTreeMap, BTreeSet};

use super::scope::{Role, roles};
use super::token::{Kind, Token};

/// All of this file, in order.
pub(crate) fn simplify(tokens: &[Token], kept: &BTreeSet<String>) -> Vec<Token> {
    let_for_const(unwrap_words(&inline_numbers(tokens, kept)))
}

/// `let` for `const`: that nothing is assigned anew was checked where it was written.
fn let_for_const(mut tokens: Vec<Token>) -> Vec<Token> {
    for at in 0..tokens.len() {
        let named = at > 0 && (tokens[at - 1].is(".") || tokens[at - 1].is("?."));
        let declares = tokens
            .get(at + 1)
            .is_some_and(|next| next.kind == Kind::Word || next.is("{") || next.is("["));
        if tokens[at].kind == Kind::Word && tokens[at].is("const") && declares && !named {
            tokens[at].text = "let".to_owned();
        }
    }
    tokens
}

/// Puts the value in place of each top-level `const NAME = number;`, so that a constant with a name costs nothing.
fn inline_numbers(tokens: &[Token], kept: &BTreeSet<String>) -> Vec<Token> {
    let roles = roles(tokens);
    let mut values: BTreeMap<&str, &Token> = BTreeMap::new();
    let mut gone = BTreeSet::new();
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" | "(" | "[" if token.kind == Kind::Sign => depth += 1,
            "}" | ")" | "]" if token.kind == Kind::Sign => depth = depth.saturating_sub(1),
            _ => {}
        }
        let [first, name, equals, value, end] = tokens.get(at..at + 5).unwrap_or_default() else {
            continue;
        };
        let number =
            value.kind == Kind::Literal && value.text.starts_with(|c: char| c.is_ascii_digit());
        if depth == 0
            && first.is("const")
            && equals.is("=")
            && number
            && end.is(";")
            && !kept.contains(&name.text)
        {
            values.insert(&name.text, value);
            gone.extend(at..at + 5);
        }
    }
    let remaining = tokens.iter().enumerate().filter(|(at, _)| !gone.contains(at));
    remaining
        .map(|(at, token)| match (values.get(token.text.as_str()), roles[at]) {
            (Some(value), Role::Variable) => {
                Token { first_of_line: token.first_of_line, ..(*value).clone() }
            }
            _ => token.clone(),
        })
        .map(|token| Token { text: number(&token), ..token })
        .collect()
}

/// `30_000` as `3e4`.
fn number(token: &Token) -> String {
    let digits = token.text.replace('_', "");
    let decimal = token.kind == Kind::Literal
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !decimal {
        return token.text.clone();
    }
    let bare = digits.trim_end_matches('0');
    let zeros = digits.len() - bare.len();
    if zeros > 2 && !bare.is_empty() { format!("{bare}e{zeros}") } else { digits }
}

/// Parentheses around a single word, which only a type's comment wanted.
fn unwrap_words(tokens: &[Token]) -> Vec<Token> {
    let mut kept: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let lone = tokens[at].is("(")
            && tokens.get(at + 1).is_some_and(|word| word.kind == Kind::Word)
            && tokens.get(at + 2).is_some_and(|close| close.is(")"))
            && !kept.last().is_some_and(|before| {
                before.kind != Kind::Sign || matches!(before.text.as_str(), ")" | "]" | "?.")
            });
        if !lone {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        kept.push(Token { first_of_line: tokens[at].first_of_line, ..tokens[at + 1].clone() });
        at += 3;
    }
    kept
}
