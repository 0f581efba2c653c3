"""The word index keeps every rule of the retrieval port, and ranks as it says."""

from __future__ import annotations

from word_index import WordIndex

from deermem.search.port import RetrievalAdapter
from deermem.testing.retrieval_contract import RetrievalAdapterContract
from deermem.testing.retrieval_samples import find, ids, make_fact, put


class TestWordIndex(RetrievalAdapterContract):
    """Inherits one test for each rule, and adds what only this adapter promises."""

    def make_adapter(self) -> RetrievalAdapter:
        """Builds an empty index."""
        return WordIndex()

    def test_the_fact_with_most_words_of_the_query_comes_first(self) -> None:
        """Confidence decides only between equals."""
        index = WordIndex()
        put(index, make_fact("tea", "drinks green tea", confidence=0.1))
        put(index, make_fact("car", "drives a green car", confidence=0.9))
        put(index, make_fact("bus", "takes the bus", confidence=0.9))
        assert ids(find(index, "GREEN tea")) == ["tea", "car"]
