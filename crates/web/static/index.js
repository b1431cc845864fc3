// The demo page: a visitor with a demo identity. A reload in this tab is the same person.
import { demoIdentity } from "./demo.js";
import { language, t } from "./i18n.js";
import "./visitor.js";

document.documentElement.lang = language;
document.title = t("title");

const identity = demoIdentity("user");
const name = new URLSearchParams(location.search).get("name") ?? undefined;
const visitor = /** @type {import("./visitor.js").KefuVisitor} */ (document.querySelector("kefu-visitor"));
visitor.source = "demo";
visitor.getToken = identity.getToken;
if (identity.known()) visitor.resume();
else visitor.askName((given) => identity.mint(given || undefined), name);
