// The demo page: a page of some shop with the widget on it, and a demo identity. A reload in this tab is the same person.
import { demoIdentity } from "./demo.js";
import { define, language, t } from "./shared/i18n.js";

define({
  en: {
    demoTitle: "A page of your site",
    demoText: "The chat at the lower right is the widget, as your visitors see it. The agent sits at /console.",
    demoName: "Your name (optional)",
  },
  "zh-CN": {
    demoTitle: "您网站上的一个页面",
    demoText: "右下角是访客看到的聊天窗口；客服工作台在 /console。",
    demoName: "您的称呼（选填）",
  },
});

const identity = demoIdentity("user");
const name = /** @type {HTMLInputElement} */ (document.getElementById("name"));
name.value = new URLSearchParams(location.search).get("name") ?? "";
document.documentElement.lang = language();
/** @type {Record<string, string>} */
const texts = { title: "demoTitle", text: "demoText", "name-label": "demoName" };
for (const [id, key] of Object.entries(texts)) /** @type {HTMLElement} */ (document.getElementById(id)).textContent = t(key);

const getToken = (/** @type {{refresh: boolean}} */ ask) => (identity.known() ? identity.getToken(ask) : identity.mint(name.value.trim() || undefined));
/** @type {any} */ (document.querySelector("kefu-widget")).identify({ getToken });
