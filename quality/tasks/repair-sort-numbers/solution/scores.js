// The `count` highest scores, the highest first. The list of the caller stays as it is.
function highest(scores, count) {
  return [...scores].sort((a, b) => b - a).slice(0, count);
}

module.exports = { highest };
