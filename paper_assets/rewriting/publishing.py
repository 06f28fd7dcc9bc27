"""A finished rewrite as a document that retrieval finds (R1, data type `rewrite`)."""

from paper_assets.models.embedder import Embedder
from paper_assets.sources.table import page_of
from paper_assets.stores.documents import Document, replace_documents, texts_to_embed
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.papers import find_paper
from paper_assets.stores.rewrites import Attempt, RewriteItem
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.languages import language_of


def publish(warehouse: Warehouse, item: RewriteItem, kept: Attempt) -> bool:
    """Make the kept rewrite the document of its paper and level; False if it is that, or if the paper has a newer
    version or is gone.
    """
    paper = find_paper(warehouse, item.paper_id)
    if paper is None or paper.version > item.version:
        return False
    category, spoken = paper.primary_category, language_of(item.original_text) or "en"
    # In the language of the original it is the paper's and the level's; in another one it stands beside that.
    name = item.target_level if item.language == spoken else f"{item.target_level}:{item.language}"
    document = Document(
        doc_id=f"{item.paper_id}:{name}",
        text=kept.text,
        paper_id=item.paper_id,
        title=item.title,
        date_int=int(f"{paper.day:%Y%m%d}") if paper.day else None,
        primary_category=category,
        categories=paper.categories,
        topic_id=category.partition(".")[0] if category else None,
        data_type="rewrite",
        access_level="public",
        language=item.language,
        version=item.version,
        url=page_of(item.paper_id),
    )
    origin = f"{item.paper_id} for {name}"
    return replace_documents(warehouse, "rewrite", origin=origin, documents=[document])


def embed_published(warehouse: Warehouse, model: Embedder) -> int:
    """Embed the published rewrites that have no vector yet; their number."""
    hashes, texts = texts_to_embed(warehouse, "rewrite", model=model.name)
    if texts:
        keep_vectors(warehouse, hashes, model.encode(texts), model=model.name)
    return len(texts)
