// When a page should doubt its connection.

/** Sleeping tabs and changing networks kill sockets without a word. @param {() => void} check */
export function watchPage(check) {
  if (typeof document === "undefined") return () => {};
  const visible = () => document.visibilityState === "visible" && check();
  addEventListener("online", check);
  addEventListener("pageshow", check);
  document.addEventListener("visibilitychange", visible);
  return () => {
    removeEventListener("online", check);
    removeEventListener("pageshow", check);
    document.removeEventListener("visibilitychange", visible);
  };
}
