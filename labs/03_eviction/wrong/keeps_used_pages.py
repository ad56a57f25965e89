"""remove() moves a page to the end instead of taking it out: pages in use are evicted later."""

KILLED_BY = "a page that is used again counts as new"


class MyEviction(MyEviction):
    def remove(self, page_id):
        self.queue.move_to_end(page_id)
