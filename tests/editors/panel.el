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

(defun say (message)
  "Post a MESSAGE of the page."
  (let* ((origin (format "http://127.0.0.1:%d" (url-port page)))
         (url-request-method "POST")
         (url-request-extra-headers `(("Content-Type" . "application/json") ("Origin" . ,origin)))
         (url-request-data message))
    (kill-buffer (url-retrieve-synchronously (concat origin (url-filename page) "messages") t))))

(defvar events (generate-new-buffer "events"))
(let ((stream (make-network-process :name "events" :buffer events :host "127.0.0.1"
                                    :service (url-port page) :coding 'utf-8)))
  (process-send-string
   stream (format "GET %sevents HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"
                  (url-filename page) (url-port page))))

(defun shows (function)
  "Whether the page was told to show FUNCTION."
  (await (lambda ()
           (with-current-buffer events
             (goto-char (point-min))
             (search-forward (format "\"shown\":{\"function\":\"%s\"" function) nil t)))))

(await (lambda () (with-current-buffer events (> (buffer-size) 0))))
(say "{\"type\": \"ready\"}")
(shows "relu")
(goto-char (point-min))
(search-forward "def attention")
(jaxsight-send-cursor)
(shows "attention")
(tell "followed" t)
(eglot-shutdown (eglot-current-server))
(await (lambda () (not (process-live-p (get-buffer-process events)))))
(tell "ended" t)
