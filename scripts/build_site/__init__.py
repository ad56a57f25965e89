"""The notebooks as a folder of HTML pages: everything inside each page, nothing fetched from anywhere."""
