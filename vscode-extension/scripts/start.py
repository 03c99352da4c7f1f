"""Start the bundled server: `python -I -S bundled/start.py server`.

All that it imports is in folders beside this file.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "libs"))

from jaxsight.__main__ import main

if __name__ == "__main__":
    main()
