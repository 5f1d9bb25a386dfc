# Open MPI $release first in this shell. Read it with:  . environment.sh
# Reading it twice does no harm. No library path is needed: compiled programs know where to look.
mpiwizard_prefix=$prefix
case ":$${PATH}:" in
    ":$${mpiwizard_prefix}/bin:"*) ;;
    *) PATH="$${mpiwizard_prefix}/bin:$${PATH}" ;;
esac
case ":$${MANPATH-}:" in
    ":$${mpiwizard_prefix}/share/man:"*) ;;
    *) MANPATH="$${mpiwizard_prefix}/share/man:$${MANPATH-}" ;;
esac
export PATH MANPATH
unset mpiwizard_prefix
