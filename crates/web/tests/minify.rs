//! What the build makes of a module does the same as the module: both are run in Node.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

#[path = "../build/minify.rs"]
mod minify;
#[path = "../build/scope.rs"]
mod scope;
#[path = "../build/simplify.rs"]
mod simplify;
#[path = "../build/token.rs"]
mod token;

/// Whatever the language has that looks like something else, and names in every place a name can have.
const TRICKY: &str = r##"
// A comment with "quotes", `ticks` and /slashes/.
const LIMIT_MS = 30_000; /* another */
const SMALL = 7;
const list = [1, 2, 3], text = "a // b", other = 'it\'s /* not */ a comment';
class Base {
  #secret = 1; _internal = { list };
  static count = 0;
  get secret() { return this.#secret; }
  set secret(value) { this.#secret = value; Base.count++; }
  async *items(from = SMALL, { to = from + 2, ...rest } = {}) { for (let at = from; at < to; at++) yield { at, rest }; }
  has(it) { return #secret in it; }
  delete(list) { return list?.length ?? SMALL; }
}
class Heir extends Base {
  list = list.map((value) => value * 2);
  constructor() { super(); this.secret = 5 / 5 / 1; }
}
function outer(list, { name: renamed = "none", text }) {
  const inner = (list, more = `t${text ?? `n${list}`}`) => ({ list, more, renamed });
  label: for (const list of [1, 2]) { if (list > 1) break label; }
  switch (renamed) { case "x": return inner(list[0]); default: return inner(list[1], text); }
}
const pattern = /[/"'`]\/(\d+)/g, quotient = LIMIT_MS / SMALL / 2;
const found = [...`a"/12 'x/34`.matchAll(pattern)].map(([, digits]) => digits);
const object = { list, "quoted": text, [`computed${SMALL}`]: other, method(list) { return list + SMALL; }, async later() { return this.list; } };
const { list: [first, ...others], ["quoted"]: quoted, missing = LIMIT_MS } = object;
let counter = 0
counter++
let sum = counter + +first - -SMALL
;[counter, sum] = [sum, counter]
const keyed = { const: 1, let: 2 }, [word] = [keyed.const - 1, keyed?.const];
const negative = typeof list === "object" ? -LIMIT_MS : /x/.test(text)
do counter--; while (counter > 3)
if (counter) { sum += 1 } else sum = 0
const e = 1, t = 2, n = 3;
const heir = new Heir(), base = new Base;
const items = [];
for await (const item of base.items(1, { to: 3, extra: e })) items.push(item);
const thrown = (() => { try { throw new TypeError("x") } catch ({ message: name }) { return name } finally { counter = 9 } })();
console.log(JSON.stringify([list, text, other, heir.secret, heir.list, heir._internal, base.has(heir), base.delete(null), Base.count, outer([1, 2], { name: "x", text }), outer([1, 2], { text: "y" }),
  quotient, found, object.method(1), await object.later(), first, others, quoted, missing, counter, sum, keyed, word, negative, e, t, n, items, thrown, (counter), `${counter}${`${sum}`}`]));
"##;

fn minified(source: &str) -> Result<String, String> {
    let tokens = token::tokens(source)?;
    let kept = BTreeSet::new();
    Ok(minify::print(&minify::shorten(&simplify::simplify(&tokens, &kept), &kept)))
}

/// What a module prints.
fn output(name: &str, source: &str) -> Result<String, String> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&file, source).map_err(|error| error.to_string())?;
    let run = Command::new("node").arg(&file).output().map_err(|error| {
        format!(
            "node is missing (Debian: `apt-get install nodejs`), or run `cargo xtask test`: {error}"
        )
    })?;
    let told = String::from_utf8_lossy(&run.stderr);
    if !run.status.success() {
        return Err(format!("{source}\n{told}"));
    }
    Ok(String::from_utf8_lossy(&run.stdout).into_owned())
}

#[test]
fn what_is_shorter_does_the_same() -> Result<(), String> {
    let short = minified(TRICKY)?;
    assert!(short.len() < TRICKY.len() * 3 / 4, "{short}");
    for gone in ["LIMIT_MS", "_internal", "#secret", "const "] {
        assert!(!short.contains(gone), "{gone} in {short}");
    }
    assert_eq!(output("tricky.mjs", TRICKY)?, output("tricky-short.mjs", &short)?, "{short}");
    Ok(())
}

#[test]
fn style_sheets_lose_only_what_says_nothing() {
    let sheet = "css`\n  /* why */\n  a > b:hover , c { margin: calc(1px + 2px) 0; }\n  d { color: red; }\n`";
    assert_eq!(
        minify::style_sheet(sheet),
        "css`a > b:hover,c{margin:calc(1px + 2px) 0}d{color:red}`"
    );
}

#[test]
fn what_does_not_end_is_an_error() {
    for source in ["const a = `b", "const a = 'b", "/* a"] {
        assert!(token::tokens(source).is_err(), "{source}");
    }
}
