# Gives the script of the Debian package, which follows, its arguments, and commands that only Debian has.
count=$1
deb-systemd-helper() {
  if [ "$1" = enable ] && [ "$count" -eq 1 ]; then
    systemctl --quiet preset "$2"
  fi
}
adduser() {
  useradd --system --user-group --home-dir /var/lib/@NAME@ --no-create-home --shell /sbin/nologin "${!#}"
}
dpkg() {
  [ "$2" != "$4" ] && [ "$(printf '%s\n' "$2" "$4" | sort --version-sort | tail -n 1)" = "$2" ]
}
installed() {
  rpm --query --queryformat '%{VERSION}\n' @NAME@ | sort --version-sort | head -n 1
}

# The argument of rpm is the number of versions that will be installed.
case "@SCRIPT@:$count" in
  preinst:1) set -- install ;;
  preinst:*) set -- upgrade "$(installed)" ;;
  postinst:1) set -- configure ;;
  postinst:*) set -- configure "$(installed)" ;;
  prerm:0)
    systemctl --quiet --no-reload disable @UNITS@ || true
    set -- remove
    ;;
  postrm:0) set -- remove ;;
  *) set -- upgrade ;;
esac
