;;; What the tests do in Emacs with the panel in a browser: Emacs is the browser, too.

(require 'url)

(open-model)
(defvar links nil "The links that a browser was started with.")
(setq browse-url-browser-function (lambda (url &rest _) (push url links)))
(search-forward "def relu")
(jaxsight-panel)
(tell "links" (length links))
(defvar page nil "The address of the page, which the link leads to.")
(with-current-buffer (url-retrieve-synchronously (car links) t)
  (goto-char (point-min))
  (tell "page" (and (search-forward "<!DOCTYPE html>" nil t) t))
  (setq page url-current-object))

(defvar events (generate-new-buffer "events"))
(make-process
 :name "events" :buffer events :coding 'utf-8 :noquery t
 :command (list (getenv "PYTHON") (expand-file-name "page.py" (getenv "SCRIPTS"))
                (format "http://127.0.0.1:%d%s" (url-port page) (url-filename page))))

(defun shown ()
  "What the page was answered last."
  (with-current-buffer events
    (goto-char (point-max))
    (and (re-search-backward "^{.*}$" nil t) (match-string 0))))

(defun shows (function)
  "Whether the page is answered with FUNCTION."
  (await (lambda () (string-search (format "{\"function\":\"%s\"" function) (or (shown) "")))))

(shows "relu")
(goto-char (point-min))
(search-forward "def attention")
(jaxsight-send-cursor)
(shows "attention")
(tell "followed" t)
(eglot-shutdown (eglot-current-server))
(await (lambda () (not (process-live-p (get-buffer-process events)))))
(tell "ended" t)
