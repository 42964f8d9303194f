// The page around textual-serve's terminal: what its script takes from the window is put in front of it here.
// Runs after that script was read and before the page is whole, so that its start can wait for the fonts.
"use strict";

(() => {
  const FACES = ["16px 'Roboto Mono'", "bold 16px 'Roboto Mono'", "italic 16px 'Roboto Mono'"];
  const start = window.onload;
  const heard = [];
  window.onload = null;

  const byId = (name) => document.getElementById(name);

  const WORDS = {
    closed: ["The server cannot be reached", "It has ended, or it refused this page."],
    opened: ["The session did not start", ""],
    drawn: ["The session has ended", ""],
    expired: ["The token has expired", ""],
  };

  // A page keeps the name of its tab for when it is loaded again or restored; a copy of the page begins without one.
  const NAME = "loop-inspector-tab";
  const random = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (n) => n.toString(16).padStart(2, "0"));
  const name = sessionStorage.getItem(NAME) ?? random().join("");
  const keep = (kept) => kept ? sessionStorage.setItem(NAME, name) : sessionStorage.removeItem(NAME);
  keep(document.hidden);
  document.addEventListener("visibilitychange", () => keep(document.hidden));
  window.addEventListener("pagehide", () => keep(true));

  function ended(state) {
    const [word, otherwise] = WORDS[state];
    byId("ended-word").textContent = word;
    byId("ended-said").textContent = heard.join("\n") || otherwise;
    byId("ended").hidden = false;
    byId("again").focus();
  }

  // The server's own words come between the terminal's: what a process said before it ended, or that all places are
  // taken. They are shown as text.
  class Watched extends WebSocket {
    constructor(url) {
      super(url);
      let state = "closed";
      this.addEventListener("open", () => {
        state = "opened";
        document.querySelector(".xterm-helper-textarea").focus();
      });
      this.addEventListener("message", (event) => {
        if (typeof event.data !== "string") {
          if (event.data.byteLength > 10) state = "drawn";
          return;
        }
        const [word, text] = JSON.parse(event.data);
        if (word === "said") heard.push(String(text));
      });
      this.addEventListener("close", (event) => ended(event.code === 4001 ? "expired" : state));
    }

    send(data) {  // a key that is pressed before or after the connection is no error
      if (this.readyState === WebSocket.OPEN) super.send(data);
    }
  }
  window.WebSocket = Watched;

  // A file is fetched beside the page and needs no window; nothing else is opened, whatever a transcript shows.
  window.open = (address) => {
    const wanted = address ? new URL(address, location.href) : null;
    if (wanted && wanted.origin === location.origin && wanted.pathname.startsWith("/download/")) {
      const link = document.createElement("a");
      link.href = wanted.href;
      link.download = "";
      link.click();
    }
    return null;
  };

  // Without a secure context (a page from another machine) there is no clipboard; a selection can still be copied.
  if (!navigator.clipboard) {
    const copied = async (text) => {
      const field = document.createElement("textarea");
      const before = document.activeElement;
      field.value = text;
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
      before?.focus();
    };
    Object.defineProperty(navigator, "clipboard", { value: { writeText: copied, readText: async () => "" } });
  }

  window.addEventListener("load", async (event) => {
    const light = matchMedia("(prefers-color-scheme: light)").matches;
    byId("terminal").dataset.sessionWebsocketUrl = `${location.protocol.replace("http", "ws")}//${location.host}/ws/${light ? "light" : "dark"}/${name}`;
    byId("again").addEventListener("click", () => location.reload());
    await Promise.allSettled(FACES.map((face) => document.fonts.load(face)));  // a cell is as wide as its font
    start.call(window, event);
  });
})();
