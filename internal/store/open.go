package store

import (
	"context"
	"database/sql"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"kubistro/internal/lab"
)

//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks our files in SQLite's header ("KUBI"), so that a mistaken
// path never gets our tables added.
const applicationID = 0x4B554249

// checkedBytes bounds the file size up to which all pages are checked at start.
const checkedBytes = 128 << 20

// Open opens the SQLite database in file path, makes it when it isn't there and
// brings its schema up to date. A file that isn't ours, is damaged, or was
// written by a newer version gives a *lab.Error that says what to do.
func Open(ctx context.Context, path string) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find database %s: %w", path, err)
	}
	if err := touch(abs); err != nil {
		return nil, unopenable(abs, err)
	}
	if isForeign(abs) {
		return nil, foreign(abs)
	}
	s := &Store{}
	if s.write, err = openPool(abs, 1, "_txlock=immediate"); err != nil {
		return nil, unopenable(abs, err)
	}
	if s.read, err = openPool(abs, 4, "_pragma=query_only(1)"); err != nil {
		_ = s.write.Close() // the first error tells more
		return nil, unopenable(abs, err)
	}
	if err := s.prepare(ctx, abs); err != nil {
		_ = s.Close() // the first error tells more
		return nil, err
	}
	return s, nil
}

// touch makes the file with a mode that keeps it from other users: learners'
// ids in it are as good as their cookies. SQLite gives its side files the same mode.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// isForeign looks into the header without SQLite, which would change another
// program's file just by being asked for WAL mode. A file of ours whose first
// changes are still in its WAL has no mark yet, but no second page either.
func isForeign(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false // opening it properly tells why
	}
	defer func() { _ = f.Close() }() // it was only read
	var h [100]byte
	if _, err := io.ReadFull(f, h[:]); err != nil || string(h[:16]) != "SQLite format 3\x00" {
		return false // empty, or no database at all: SQLite will say so
	}
	id, pages := binary.BigEndian.Uint32(h[68:]), binary.BigEndian.Uint32(h[28:])
	return id != applicationID && (id != 0 || pages > 1)
}

func openPool(path string, conns int, query string) (*sql.DB, error) {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	u.RawQuery = "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=foreign_keys(1)&" + query
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// prepare looks whether the file is sound, marks it as ours and migrates it.
func (s *Store) prepare(ctx context.Context, path string) error {
	if err := s.quickCheck(ctx, path); err != nil {
		return err
	}
	if _, err := s.write.ExecContext(ctx, fmt.Sprintf(`PRAGMA application_id = %d`, applicationID)); err != nil {
		return unopenable(path, err)
	}
	return s.migrate(ctx, path)
}

func (s *Store) quickCheck(ctx context.Context, path string) error {
	if fi, err := os.Stat(path); err != nil || fi.Size() > checkedBytes {
		return nil
	}
	var verdict string
	err := s.write.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&verdict)
	switch {
	case isDamage(err):
		return damaged(path, err)
	case err != nil:
		return unopenable(path, err)
	case verdict != "ok":
		return damaged(path, errors.New(verdict))
	}
	return nil
}

func (s *Store) migrate(ctx context.Context, path string) error {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("find migrations: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, s.write, dir)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	current, target, err := p.GetVersions(ctx)
	switch {
	case isDamage(err):
		return damaged(path, err)
	case err != nil:
		return unopenable(path, err)
	case current > target:
		return newer(path, current, target)
	}
	if _, err := p.Up(ctx); err != nil {
		if isDamage(err) {
			return damaged(path, err)
		}
		return unopenable(path, fmt.Errorf("migrate from version %d to %d: %w", current, target, err))
	}
	return nil
}

func isDamage(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	code := e.Code() & 0xff // without the extended part
	return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB
}

func unopenable(path string, err error) error {
	return lab.Fail(lab.CodeUnavailable,
		"無法開啟資料庫檔案 "+path+"。請確認資料夾存在、可以寫入，而且沒有其他程式占用這個檔案。",
		"The database file "+path+" can't be opened. See that its folder exists and can be written, and that no other program holds the file.").Because(err)
}

func damaged(path string, err error) error {
	return lab.Fail(lab.CodeUnavailable,
		"資料庫檔案 "+path+" 已損毀。請從備份還原，或把它移到別處，伺服器會重新建立一份空的資料庫（學習進度會遺失）。",
		"The database file "+path+" is damaged. Restore it from a backup, or move it away to start with an empty one (progress is lost).").Because(err)
}

func foreign(path string) error {
	return lab.Fail(lab.CodeInvalid,
		"檔案 "+path+" 是別的程式的資料庫，Kubistro 不會去動它。請換一個資料夾。",
		"The file "+path+" is the database of another program; Kubistro leaves it alone. Choose another folder.")
}

func newer(path string, current, target int64) error {
	return lab.Fail(lab.CodeInvalid,
		fmt.Sprintf("資料庫檔案 %s 是較新版的 Kubistro 寫的（結構版本 %d，這個版本只認得到 %d）。請改用較新的版本，或還原升級前的備份。", path, current, target),
		fmt.Sprintf("The database file %s was written by a newer Kubistro (schema version %d, this one knows up to %d). Use the newer version, or restore the backup from before the upgrade.", path, current, target))
}
