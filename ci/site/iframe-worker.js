// Browsers start no worker for a page that was opened from a file, and the search needs one. Here it runs in an empty
// frame instead: a window that has the same few words as a worker.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inner.document.createElement("script");
      // Messages that come before the script is there wait for it.
      this.ready = new Promise((resolve, reject) => Object.assign(script, { onload: resolve, onerror: reject }));
      script.src = address;
      inner.document.body.append(script);
    }

    postMessage(data) {
      const send = () => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
      this.ready.then(send);
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
