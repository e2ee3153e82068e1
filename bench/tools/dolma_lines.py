"""dolma's paragraphs, which are lines, by its Bloom filter: `dolma_lines.py DOCUMENTS LINES`, where a folder of the path is called documents.

The extension alone is loaded: what it is packed with installs half a gigabyte, of which the rule takes nothing."""

import glob
import importlib.util
import json
import shutil
import site
import sys
import tempfile

documents, lines = sys.argv[1], int(sys.argv[2])
(extension,) = glob.glob(f"{site.getsitepackages()[0]}/dolma/dolma.*.so")
spec = importlib.util.spec_from_file_location("dolma", extension)
dolma = importlib.util.module_from_spec(spec)
spec.loader.exec_module(dolma)
work = tempfile.mkdtemp()
configuration = {
    "documents": [documents],
    "work_dir": {"input": f"{work}/in", "output": f"{work}/out"},
    "dedupe": {"name": "lines", "paragraphs": {"attribute_name": "repeated"}, "skip_empty": True},
    "bloom_filter": {"file": f"{work}/filter", "read_only": False, "size_in_bytes": 0, "estimated_doc_count": lines, "desired_false_positive_rate": 1e-6},
    "processes": 1,
    "is_s3_volume": False,
}
dolma.deduper_entrypoint(json.dumps(configuration))
shutil.rmtree(work)
