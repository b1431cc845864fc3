// Unsent messages over a reload: one record each in IndexedDB, under the name of whose they are.

/** @param {any} request @returns {Promise<any>} */
function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** @param {string} call @param {...any} values @returns {Promise<any>} */
async function transact(call, ...values) {
  const opening = indexedDB.open("kefu");
  opening.onupgradeneeded = () => opening.result.createObjectStore("unsent");
  const database = await settled(opening);
  const store = database.transaction("unsent", "readwrite").objectStore("unsent");
  const result = await settled(store[call](...values));
  // Kept open it would stand in the way of `clear` in another tab.
  database.close();
  return result;
}

/** @type {import("../client.js").KeptStorage} */
export const keeper = {
  // Keys grow with time, so the order is that of writing. "0" is the character after "/".
  all: (owner) => transact("getAll", IDBKeyRange.bound(`${owner}/`, `${owner}0`)),
  put: (owner, entry) => transact("put", entry, `${owner}/${entry.clientMsgId}`),
  delete: (owner, clientMsgId) => transact("delete", `${owner}/${clientMsgId}`),
  clear: () => settled(indexedDB.deleteDatabase("kefu")),
};
